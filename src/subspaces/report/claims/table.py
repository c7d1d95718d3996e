"""The claims as a table: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from subspaces.report.claims.comparing import Claim


def claims_markdown(claims: Sequence[Claim]) -> str:
    lines = [
        "**The claims of the paper.** Each is computed from the numbers and judged only from comparable budgets.",
        "",
    ]
    lines += ["| Claim | Section | Verdict | Evidence |", "|---|---|---|---|"]
    lines += [f"| {c.title} | {c.section} | **{c.verdict}** | {c.evidence.replace('|', '/')} |" for c in claims]
    return "\n".join([*lines, ""])


_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "λ": r"$\lambda$", "ρ": r"$\rho$", "×": r"$\times$"}
_LATEX |= {"−": "$-$", "’": "'", ">": "$>$", "<": "$<$"}


def claims_latex(claims: Sequence[Claim]) -> str:
    def safe(text: str) -> str:
        return "".join(_LATEX.get(letter, letter) for letter in text)

    lines = ["% needs booktabs and tabularx", r"\begin{table*}[t]", r"  \centering", r"  \small"]
    lines += [r"  \caption{The claims of the paper, judged only from comparable budgets.}", r"  \label{tab:claims}"]
    lines += [r"  \begin{tabularx}{\textwidth}{p{5.2cm}lX}", r"    \toprule"]
    lines += [r"    Claim & Verdict & Evidence \\", r"    \midrule"]
    lines += [f"    {safe(c.title)} & {c.verdict} & {safe(c.evidence)} \\\\" for c in claims]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabularx}", r"\end{table*}", ""])
