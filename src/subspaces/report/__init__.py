"""The paper's side: its numbers and claims, verdicts, tables and figures. Only this package reads results."""
