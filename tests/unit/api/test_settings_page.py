"""Settings as the console's page Health shows them."""

from __future__ import annotations

from pydantic import SecretStr

from api.console.pages.admin import _in_force
from pipeline.model_settings import LLMSettings
from pipeline.settings import Settings


def test_no_secret_is_shown() -> None:
    """Nor a URL with a password, which `memlane settings` hides too."""
    settings = Settings(
        database_url=SecretStr("postgresql://memlane:hush@db/memlane"),
        chroma_url="http://chroma:hush@chroma:8000",
        llm=LLMSettings(
            model="openai/gpt", api_key=SecretStr("hush"), api_base="http://me:hush@models"
        ),
    )
    rows = {row["name"]: row["value"] for row in _in_force(settings)}
    assert "hush" not in str(rows)
    assert rows["MEMLANE_CHROMA_URL"] == "set"
    assert rows["MEMLANE_LLM"].startswith("model openai/gpt, api_base set, api_key set")
