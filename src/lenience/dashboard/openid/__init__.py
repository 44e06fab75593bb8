"""Sign-in with OpenID Connect: the operator's settings, the provider, its ID tokens, and attempts to sign in."""
