"""What a model's own files say is read first; what is known of it fills the gaps; what cannot be run is refused."""

import pytest

from recollect.errors import SetupError
from recollect.llm.local.encoder import Pooling
from recollect.llm.local.layout import MAX_TOKENS, load_known, read_json, read_layout
from recollect.models.outside import KnownModel

BERT = {"model_type": "bert", "hidden_size": 384, "max_position_embeddings": 512, "pad_token_id": 0}
XLM = {"model_type": "xlm-roberta", "hidden_size": 1024, "max_position_embeddings": 514, "pad_token_id": 1}
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "word_embedding_dimension": 384}
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
KNOWN = KnownModel("e5", "a/e5", "bert", 384, "many", "MIT", 1, "cls", cue_prefix="query: ", memory_prefix="passage: ")


def modules(*kinds):
    return [{"path": "" if kind == "Transformer" else f"1_{kind}", "type": f"st.models.{kind}"} for kind in kinds]


def layout(known=None, **files):
    named = {name.replace("__", "/") + ".json": content for name, content in files.items()}
    return read_layout(named.get, known)


def test_minilm_is_read_from_its_own_files():
    found = layout(
        config=BERT,
        modules=modules("Transformer", "Pooling", "Normalize"),
        **{"1_Pooling__config": MEAN},
        sentence_bert_config={"max_seq_length": 256},
        tokenizer_config={"model_max_length": 512},
    )
    assert (found.pooling, found.tokens, found.dimensions, found.padding) == (Pooling.MEAN, 256, 384, 0)
    assert (found.cue_prefix, found.memory_prefix) == ("", "")


def test_the_models_own_files_go_before_what_is_known():
    prompts = {"prompts": {"query": "ask: ", "document": "text: "}}
    found = layout(KNOWN, config=BERT, **{"1_Pooling__config": MEAN}, config_sentence_transformers=prompts)
    assert (found.pooling, found.cue_prefix, found.memory_prefix) == (Pooling.MEAN, "ask: ", "text: ")
    found = layout(KNOWN, config=BERT)
    assert (found.pooling, found.cue_prefix, found.memory_prefix) == (Pooling.CLS, "query: ", "passage: ")


@pytest.mark.parametrize(
    ("config", "said", "tokens"),
    [
        (XLM, {}, 512),
        (XLM | {"max_position_embeddings": 8194}, {"sentence_bert_config": {"max_seq_length": 8192}}, MAX_TOKENS),
        (XLM | {"max_position_embeddings": 130}, {}, 128),
        (BERT, {"tokenizer_config": {"model_max_length": 10**30}}, 512),
        (BERT | {"max_position_embeddings": 128}, {}, 128),
    ],
)
def test_the_longest_text_fits_the_positions(config, said, tokens):
    assert layout(KNOWN, config=config, **said).tokens == tokens


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "config.json is missing"),
        ({"config": BERT | {"model_type": "qwen3"}}, "family qwen3 cannot be run; bert and xlm-roberta can"),
        ({"config": BERT}, "pools by an unknown rule"),
        ({"config": BERT, "1_Pooling__config": MEAN | CLS | MEAN | {"pooling_mode_cls_token": True}}, "pools by"),
        ({"config": BERT, "1_Pooling__config": {"pooling_mode_max_tokens": True}}, "pooling_mode_max_tokens"),
        ({"config": BERT, "modules": modules("Transformer", "Pooling", "Dense")}, "cannot be run: Dense"),
    ],
)
def test_what_cannot_be_run_is_refused(files, said):
    with pytest.raises(SetupError, match=said):
        layout(None, **files)


def test_a_file_that_is_no_json_names_the_remedy(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SetupError, match="is not JSON; pull the model again"):
        read_layout(read_json(tmp_path), None)


def test_bge_m3_and_e5_have_what_their_cards_ask_for():
    known = load_known()
    assert known["bge-m3"].pooling == "cls" and not known["bge-m3"].cue_prefix
    assert (known["multilingual-e5-small"].cue_prefix, known["multilingual-e5-small"].memory_prefix) == (
        "query: ",
        "passage: ",
    )
