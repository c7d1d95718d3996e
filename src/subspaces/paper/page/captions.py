"""What is said of each figure: its title, its caption, and what is to be seen, for those who cannot see it."""

from __future__ import annotations

KNOWN = {
    "overview": (
        "Concepts as subspaces",
        "Two concepts as planes of ℝ³ and what the operations make of them. Drawn from computed projectors.",
        "Four drawings of planes in space: two concepts as planes, their intersection as a line, the part of one that is orthogonal to the "
        "other as a line, and the plane that the two lines span.",
    ),
    "rank_vs_descendants": (
        "Rank and generality",
        "Effective rank of every WordNet noun against its number of descendants, with the chain from homo sapiens to entity.",
        "Scatter plot: effective rank against the number of descendants on a logarithmic axis, one dot per noun, with the median and the "
        "chain from homo sapiens to entity.",
    ),
    "link_prediction_coverage": (
        "Link prediction by coverage",
        "F1 by share of non-basic edges seen in training. Filled: ours; open: the paper’s.",
        "Line plot: F1 at 0, 10, 25 and 50 % of the non-basic edges, one line per geometry, with the paper’s values as open markers. "
        "The numbers are those of Table 4.",
    ),
    "link_prediction_time": (
        "Link prediction by training time",
        "F1 against training time, one marker per geometry and coverage.",
        "Scatter plot: F1 against training time on a logarithmic axis, markers of one geometry joined in the order of coverage.",
    ),
    "sph": (
        "The projection head",
        "How a sentence becomes a subspace: hidden states of the backbone, learnable queries that attend to them, an MLP, and the soft "
        "projector of the vectors that come out (the paper’s Figure 2, drawn by code).",
        "Block diagram from left to right: tokens, backbone, attention of learnable queries, MLP, soft projector.",
    ),
    "inclusion_histograms": (
        "Inclusion by class",
        "Normalised inclusion of test pairs by their gold label, 2-way and 3-way.",
        "Histograms of the inclusion score between 0 and 1, one colour per class, for the 2-way and the 3-way model.",
    ),
    "entailment_chains": (
        "Rank along entailment chains",
        "Effective rank of sentences that grow more general from left to right. Rank should rise; steps where it does not are marked.",
        "Line plots of effective rank, one per chain of sentences, from the most specific sentence to the most general.",
    ),
    "training_curves": (
        "Training curves",
        "Validation accuracy of the SNLI models during training.",
        "Line plot: validation accuracy against training pairs seen, one line per model.",
    ),
    "accuracy_by_pairs": (
        "Accuracy by number of training pairs",
        "2-way test accuracy of the projection head and of the MLP on [p, h, p − h] by number of training pairs. Not in the paper.",
        "Line plot: accuracy against the number of training pairs on a logarithmic axis, one line per model.",
    ),
    "composition": (
        "Compositional entailment",
        "AUC of conjunction and negation per model with 95 % bootstrap intervals; open markers are the paper’s values.",
        "Dot plot: AUC of conjunction and of negation, one line per model, with intervals. The numbers are those of Table 6.",
    ),
    "compression": (
        "Compression",
        "What is left of mAP, 2-way accuracy and mean rank when eigenvalues below τ are dropped; fourfold compression is marked.",
        "Line plots against the threshold τ: mean average precision, accuracy and mean rank.",
    ),
    "storage": (
        "Storage against quality",
        "Recall@10 against bytes per caption for every stored form. Not in the paper.",
        "Scatter plot: recall at 10 against bytes per caption on a logarithmic axis, one marker per index or truncated form.",
    ),
    "retrieval": (
        "Logic over captions",
        "The best captions for the paper’s seven queries, beside what the plain text of the query and arithmetic of its vectors find.",
        "Seven blocks of text, one per query, with the best captions by subspaces, by plain text and by vector arithmetic.",
    ),
}
