"""A judge behind an OpenAI-compatible endpoint, as something to ask.

The one file of the judges that talks to the network; the scorers take any callable.
"""

import http.client
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from routeproof.errors import ConfigError
from routeproof.scorers.judge.question import Ask, Question, request_body

SECOND_TRY = "Reply with the JSON object alone: no other text, no code fence."


def ask_endpoint(
    url: str,
    model: str,
    *,
    api_key: str | None = None,
    concurrency: int = 8,
    timeout_s: float = 120.0,
) -> Ask:
    """A callable that sends questions to ``url`` + ``/chat/completions``.

    A question whose request fails in any way is answered ``None``: the judge's
    silence is counted, not raised.

    Args:
        url: Base address, such as ``http://127.0.0.1:8000/v1``.
        model: As the endpoint names it.
        api_key: Sent as a bearer token.
        concurrency: Requests at a time.
        timeout_s: Of one request.

    Raises:
        ConfigError: The address is not http or https.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"judge endpoint {url!r} is no http(s) address")
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    is_tls = parts.scheme == "https"
    connect = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
    host, port = parts.hostname, parts.port
    path = parts.path.rstrip("/") + "/chat/completions"

    def one(question: Question) -> str | None:
        connection = connect(host, port, timeout=timeout_s)
        try:
            body = request_body(_plainer(question), model)
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            data = response.read()
            return _content(data) if response.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def ask(questions: Sequence[Question]) -> list[str | None]:
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(one, questions))

    return ask


def _plainer(question: Question) -> Question:
    if not question.is_second_try:
        return question
    *before, last = question.messages
    again = {**last, "content": f"{last['content']}\n\n{SECOND_TRY}"}
    return Question((*before, again), question.schema, is_second_try=True)


def _content(data: bytes) -> str | None:
    try:
        content = json.loads(data)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return content if isinstance(content, str) else None
