"""params.yaml: what it may say, what happens when it says something else, and how its layers add up."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from subspaces.errors import UserError
from subspaces.experiments.reconstruction.settings import Reconstruction, ReconstructionScales, RowTraining
from subspaces.hierarchy.reconstruction import ReconstructionTraining
from subspaces.pipeline.params import POS, SCALES, Params, load_params, params_schema, parse_params
from subspaces.pipeline.params.root import RankFigure
from subspaces.pipeline.project import Project

REAL = Path(__file__).resolve().parents[2] / "params.yaml"
ABSENT = object()


def real() -> dict[str, Any]:
    return yaml.safe_load(REAL.read_text(encoding="utf-8"))


ROWS = list(real()["reconstruction"]["models"])


def changed(path: str, value: Any) -> dict[str, Any]:
    """The real file with one value replaced, added, or (ABSENT) taken away."""
    content = real()
    *way, last = path.split("/")
    place = content
    for part in way:
        place = place.setdefault(part, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return content


def job_of(params: Params, row: str, pos: str) -> Any:
    return params.reconstruction.job(row, pos, params.scale)


def complaint(content: Any) -> str:
    with pytest.raises(UserError) as caught:
        parse_params(content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("speed", Params),
        ("reconstruction/lamda", Reconstruction),
        ("reconstruction/training/lrr", ReconstructionTraining),
        ("reconstruction/scales/huge", ReconstructionScales),
        ("reconstruction/scales/quick/all/lrr", ReconstructionTraining),
        ("reconstruction/scales/laptop/rows/subspace-64/adjectives", RowTraining),
        ("reconstruction/scales/laptop/rows/subspace-64/nouns/lrr", ReconstructionTraining),
        ("figures/rank_vs_descendants/colour", RankFigure),
    ],
)
def test_an_unknown_key_is_named_with_the_allowed_ones(path: str, kind: type) -> None:
    allowed = ", ".join(field.alias or name for name, field in kind.model_fields.items())
    assert (
        complaint(changed(path, 1))
        == f"params.yaml: {path.replace('/', '.')} is not a known key; allowed here: {allowed}."
    )


def test_an_unknown_key_of_a_model_is_named() -> None:
    text = complaint(changed("reconstruction/models/subspace-64/columns", 1))
    assert text.startswith(
        "params.yaml: reconstruction.models.subspace-64.columns is not a known key; allowed here: geometry, dim, vectors"
    )
    assert "\n" not in text


def test_only_the_keys_of_the_models_own_geometry_are_offered() -> None:
    text = complaint(changed("reconstruction/models/poincare-10/score", "inner"))
    assert (
        text == "params.yaml: reconstruction.models.poincare-10.score is not a known key; allowed here: geometry, dim."
    )


@pytest.mark.parametrize(
    ("path", "value", "where", "says"),
    [
        # wrong type; a quoted number is a string
        ("reconstruction/training/lr", "0.1", "reconstruction.training.lr", "valid number (it is '0.1')"),
        ("reconstruction/training/epochs", "100", "reconstruction.training.epochs", "valid integer (it is '100')"),
        ("reconstruction/training/epochs", 1.5, "reconstruction.training.epochs", "valid integer (it is 1.5)"),
        ("reconstruction/training/epochs", True, "reconstruction.training.epochs", "valid integer (it is True)"),
        ("reconstruction/training/in_batch", 1, "reconstruction.training.in_batch", "valid boolean (it is 1)"),
        ("reconstruction/training/in_batch", "yes", "reconstruction.training.in_batch", "valid boolean (it is 'yes')"),
        ("reconstruction/training", 5, "reconstruction.training", "valid dictionary"),
        (
            "reconstruction/models/subspace-64/dim",
            "64",
            "reconstruction.models.subspace-64.dim",
            "valid integer (it is '64')",
        ),
        ("reconstruction/scales/quick/seeds", 3, "reconstruction.scales.quick.seeds", "valid list (it is 3)"),
        (
            "reconstruction/scales/quick/all/lr",
            "0.1",
            "reconstruction.scales.quick.all.lr",
            "valid number (it is '0.1')",
        ),
        ("checkpoint/seconds", None, "checkpoint.seconds", "valid number (it is None)"),
        ("wordnet/instance_hypernyms", "false", "wordnet.instance_hypernyms", "valid boolean (it is 'false')"),
        # out of range
        ("reconstruction/training/epochs", 0, "reconstruction.training.epochs", "greater than or equal to 1 (it is 0)"),
        ("reconstruction/training/lr", 0, "reconstruction.training.lr", "greater than 0 (it is 0)"),
        ("reconstruction/training/lr", float("nan"), "reconstruction.training.lr", "(it is nan)"),
        (
            "reconstruction/training/lr_final",
            1.5,
            "reconstruction.training.lr_final",
            "less than or equal to 1 (it is 1.5)",
        ),
        (
            "reconstruction/training/trace_pull",
            -0.1,
            "reconstruction.training.trace_pull",
            "greater than or equal to 0 (it is -0.1)",
        ),
        ("reconstruction/lambda", -0.2, "reconstruction.lambda", "greater than 0 (it is -0.2)"),
        ("reconstruction/scales/quick/seeds", [], "reconstruction.scales.quick.seeds", "at least 1 item"),
        (
            "reconstruction/scales/quick/seeds",
            [0, -1],
            "reconstruction.scales.quick.seeds.1",
            "greater than or equal to 0 (it is -1)",
        ),
        ("reconstruction/models", {}, "reconstruction.models", "at least 1 item"),
        ("checkpoint/seconds", 0, "checkpoint.seconds", "greater than 0 (it is 0)"),
        ("bounds/dims", [1], "bounds.dims.0", "greater than or equal to 2 (it is 1)"),
        ("figures/rank_vs_descendants/points", "red", "figures.rank_vs_descendants.points", "(it is 'red')"),
        # not one of the choices
        ("scale", "huge", "scale", "'quick', 'laptop' or 'paper' (it is 'huge')"),
        (
            "reconstruction/training/sampling",
            "both",
            "reconstruction.training.sampling",
            "'per-edge' or 'shared' (it is 'both')",
        ),
        (
            "reconstruction/models/euclidean-128/score",
            "cosine",
            "reconstruction.models.euclidean-128.score",
            "'distance' or 'inner' (it is 'cosine')",
        ),
        (
            "reconstruction/models/torus-3",
            {"geometry": "torus", "dim": 3},
            "reconstruction.models.torus-3",
            "'cones', 'disk', 'euclidean', 'gaussian', 'lorentz', 'order', 'poincare', 'subspace', 'umbral'",
        ),
        ("reconstruction/models/nothing", {"dim": 3}, "reconstruction.models.nothing", "'geometry'"),
        (
            "reconstruction/scales/quick/rows",
            {"nope": {}},
            "reconstruction",
            "scales.quick.rows.nope is not one of the models (" + ROWS[0],
        ),
        (
            "figures/rank_vs_descendants/model",
            "nope",
            "the file",
            "figures.rank_vs_descendants.model is not one of " + ROWS[0],
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_value_is_named_with_what_is_allowed(path: str, value: Any, where: str, says: str) -> None:
    text = complaint(changed(path, value))
    assert text.startswith(f"params.yaml: {where}: ")
    assert says in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "path",
    ["scale", "reconstruction", "reconstruction/lambda", "reconstruction/training/lr", "reconstruction/scales/paper"],
)
def test_a_missing_key_is_named(path: str) -> None:
    assert complaint(changed(path, ABSENT)) == f"params.yaml: {path.replace('/', '.')} is missing."


def test_a_missing_key_of_a_model_is_named() -> None:
    assert (
        complaint(changed("reconstruction/models/poincare-10/dim", ABSENT))
        == "params.yaml: reconstruction.models.poincare-10.dim is missing."
    )


@pytest.mark.parametrize(
    "path", ["reconstruction/training/lr", "reconstruction/lambda", "reconstruction/training/start"]
)
def test_infinity_is_not_a_setting(path: str) -> None:
    assert path.replace("/", ".") in complaint(changed(path, float("inf")))


def test_a_seed_counts_once() -> None:
    assert "reconstruction.scales.quick.seeds" in complaint(changed("reconstruction/scales/quick/seeds", [0, 0]))


@pytest.mark.parametrize("content", [None, [], "text", 3])
def test_not_a_mapping(content: Any) -> None:
    assert complaint(content) == "params.yaml: it must be a mapping of keys to values."


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"scale: [quick\n", "is not valid YAML: .*line 2"),
        (b"scale: quick\n\tbatch: 3\n", "is not valid YAML"),
        (b"\xff\xfe\x00\x01", "is not valid YAML"),
        (b"", "must be a mapping"),
        (b"- scale\n", "must be a mapping"),
    ],
)
def test_a_file_that_is_not_yaml(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "my.yaml").write_bytes(content)
    with pytest.raises(UserError, match=f"^my.yaml:? .*{says}") as caught:
        load_params(tmp_path / "my.yaml", scale="quick")
    assert "\n" not in str(caught.value)


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(REAL.read_text(encoding="utf-8") + "\nscale: quick\n", encoding="utf-8")
    with pytest.raises(UserError, match="scale"):
        load_params(tmp_path / "params.yaml")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"params\.yaml was not found: run from the project's folder"):
        load_params(tmp_path / "params.yaml")


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_the_command_replaces_that_of_the_file(scale: str) -> None:
    assert load_params(REAL, scale).scale == scale
    assert load_params(REAL).scale == real()["scale"]
    with pytest.raises(UserError, match="scale: input should be 'quick', 'laptop' or 'paper'"):
        load_params(REAL, "huge")


def expected_training(content: dict[str, Any], scale: str, row: str, pos: str) -> dict[str, Any]:
    """The layers, added up by hand from the plain YAML."""
    budget = content["reconstruction"]["scales"][scale]
    layers = budget.get("rows", {}).get(row, {})
    result = dict(content["reconstruction"]["training"])
    for layer in (budget.get("all", {}), layers.get("both", {}), layers.get(pos, {})):
        result.update({key: value for key, value in layer.items() if value is not None})
    return result


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("pos", POS)
@pytest.mark.parametrize("row", ROWS)
def test_every_job_of_the_real_file(row: str, pos: str, scale: str) -> None:
    content = real()
    job = load_params(REAL, scale).reconstruction.job(row, pos, scale).model_dump(mode="json")
    assert job["training"] == expected_training(content, scale, row, pos)
    assert job["subtree"] == content["reconstruction"]["scales"][scale].get("subtree", {}).get(pos)
    model = content["reconstruction"]["models"][row]
    assert model.items() <= job["model"].items()
    if model["geometry"] == "subspace":
        assert job["model"]["lam"] == content["reconstruction"]["lambda"]
    else:
        assert "lam" not in job["model"]
    json.dumps(job, allow_nan=False)  # a job becomes part of a key


def test_later_layers_win() -> None:
    content = real()
    content["scale"] = "laptop"
    rows = {"poincare-10": {"both": {"lr": 2.0, "batch": 22}, "verbs": {"lr": 3.0, "negatives": None}}}
    content["reconstruction"]["training"] |= {"lr": 0.5, "negatives": 19, "burn_in": 7, "batch": 128, "epochs": 100}
    content["reconstruction"]["scales"]["laptop"] = {
        "seeds": [0],
        "all": {"lr": 1.0, "batch": 11, "epochs": 9},
        "rows": rows,
    }
    params = parse_params(content)

    def some(row: str, pos: str) -> tuple:
        training = params.reconstruction.job(row, pos, params.scale).training
        return tuple(getattr(training, key) for key in ("lr", "batch", "epochs", "negatives", "burn_in"))

    assert some("poincare-10", "verbs") == (3.0, 22, 9, 19, 7)
    assert some("poincare-10", "nouns") == (2.0, 22, 9, 19, 7)
    assert some("lorentz-10", "verbs") == (1.0, 11, 9, 19, 7)


def test_a_false_or_zero_layer_counts() -> None:
    """What a layer says is not the same as what it leaves out, also when it says false or 0."""
    content = real()
    content["scale"] = "quick"
    content["reconstruction"]["training"] |= {"in_batch": True, "burn_in": 5, "lr_final": 0.5}
    content["reconstruction"]["scales"]["quick"] = {
        "seeds": [0],
        "all": {"in_batch": False, "burn_in": 0, "lr_final": 0},
    }
    training = parse_params(content).reconstruction.job("subspace-64", "verbs", "quick").training
    assert (training.in_batch, training.burn_in, training.lr_final) == (False, 0, 0)


def test_unknown_rows_and_parts_of_speech() -> None:
    params = load_params(REAL, "quick")
    with pytest.raises(UserError, match=r"unknown row 'box-5'.*subspace-64"):
        params.reconstruction.job("box-5", "nouns", params.scale)
    with pytest.raises(UserError, match="unknown part of speech 'adverbs': choose nouns or verbs"):
        params.reconstruction.job("subspace-64", "adverbs", params.scale)


def test_a_pull_on_the_trace_is_for_subspaces() -> None:
    content = changed("reconstruction/training/trace_pull", 0.1)
    content["reconstruction"]["scales"][content["scale"]] = {"seeds": [0]}  # no other layer has a say
    params = parse_params(content)
    assert params.reconstruction.job("subspace-64", "nouns", params.scale).training.trace_pull == 0.1
    with pytest.raises(UserError, match=r"trace_pull is for subspaces.*poincare-10"):
        params.reconstruction.job("poincare-10", "nouns", params.scale)


def test_parsing_does_not_change_its_input() -> None:
    content = real()
    before = copy.deepcopy(content)
    parse_params(content).reconstruction.job("subspace-64", "nouns", "laptop")
    assert content == before


def test_the_schema_agrees_with_the_types() -> None:
    validator = jsonschema.Draft202012Validator(params_schema())
    validator.check_schema(params_schema())
    assert validator.is_valid(real())
    for path, value in (
        ("speed", 1),
        ("scale", "huge"),
        ("reconstruction/training/lr", -1),
        ("reconstruction/training/epochs", "9"),
    ):
        assert not validator.is_valid(changed(path, value))


def test_how_many_pairs_a_sentence_model_is_trained_on():
    """The most special word counts: the learning curve's own number, the sweep's, the model's by its ways, the row's, the scale's."""
    content = real()
    quick = content["snli"]["scales"]["quick"]
    quick |= {"pairs": 256, "sweep": {"pairs": 128}}
    quick["rows"]["minilm-mlp"] = {"pairs": 99, "three": {"pairs": 33}}
    quick["rows"]["minilm-subspace-128"] = {"two": {"pairs": "all", "training": {"validate_steps": 500}}}
    quick["curve"] = [7]
    snli = parse_params(content).snli
    wanted = {
        ("minilm-mlp", 2): 99,
        ("minilm-mlp", 3): 33,
        ("minilm-mlp-diff-7-pairs", 3): 7,
        ("minilm-mlp-diff", 3): 256,
    }
    wanted |= {
        ("minilm-subspace-128", 2): None,
        ("minilm-subspace-128", 3): 256,
        ("lambda-0.1", 2): 128,
        ("lambda-0.1", 3): 128,
    }
    assert {key: snli.job(*key, "quick").pairs for key in wanted} == wanted
    looks = {
        key: snli.job(*key, "quick").training.validate_steps for key in wanted | {("minilm-subspace-128-7-pairs", 2): 7}
    }
    assert {key for key, value in looks.items() if value == 500} == {("minilm-subspace-128", 2)}


def test_the_filter_of_the_compositional_set_keeps_its_own_number_of_pairs():
    for scale, row in (("quick", "minilm-mlp-diff"), ("laptop", "minilm-mlp-diff-16000-pairs")):
        project = Project(load_params(REAL, scale), root=REAL.parent)
        models = [source.output for source in project.experiment("composition").elicited_set().inputs]
        assert f"models/snli/{row}/2way/seed-0/settings.json" in models
