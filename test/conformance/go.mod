module pinfold.dev/conformance

go 1.20

require github.com/opencontainers/distribution-spec/conformance v0.0.0-20250220192232-583e014d1541
