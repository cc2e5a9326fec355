"""Memories and conversations of other systems, as lines of an import or as adds.

mem0        stores of Mem0's open-source library: history and vector store
platform    memories from Mem0's API
chats       conversations of ChatGPT, or in the form of OpenAI's API, as adds
"""
