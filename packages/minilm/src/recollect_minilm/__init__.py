"""The sentence encoder all-MiniLM-L6-v2: `model.onnx` and `vocab.txt`. Recollect reads them without importing this."""
