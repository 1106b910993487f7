"""The lab's model: a tiny gpt-oss in real Hugging Face layout, whose made weights recite a text."""
