"""What Dify asks for: an external knowledge base, and a document of its tools."""
