"""Import and export of networks in ONNX and LiteRT files."""
