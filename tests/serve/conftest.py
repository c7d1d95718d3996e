from tests.serve.served import client, model, service, taxonomy  # noqa: F401
