"""Samples encrypted at rest, when a key is given."""

import base64
import hashlib
from collections.abc import Mapping

from routeproof.canary.samples.spool import Seal
from routeproof.errors import ConfigError, StoredRunError


def seal_from(variable: str | None, environ: Mapping[str, str]) -> Seal:
    """The seal of a key in an environment variable; plain without one.

    Fernet of the cryptography package (AES-128-CBC with HMAC-SHA256); the key is the
    SHA-256 of what the variable holds.

    Raises:
        ConfigError: The variable is not set, or the package is not installed.
    """
    if variable is None:
        return Seal()
    secret = environ.get(variable)
    if not secret:
        raise ConfigError(
            f"the environment variable {variable} is not set",
            key="canary.privacy.seal_key_env",
            hint=f"export {variable}=... before you serve",
        )
    try:
        from cryptography.fernet import Fernet, InvalidToken
    except ImportError:
        raise ConfigError(
            "encryption at rest needs the package cryptography",
            key="canary.privacy.seal_key_env",
            hint="pip install 'routeproof[canary]'",
        ) from None
    box = Fernet(base64.urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()))

    def unseal(body: bytes) -> bytes:
        try:
            return box.decrypt(body)
        except InvalidToken:
            raise StoredRunError(
                "a sample cannot be opened with this key",
                hint="give the key it was sealed with, or remove the spool",
            ) from None

    return Seal(close=box.encrypt, open=unseal)
