module pinfold.dev/clients

go 1.25.0

require (
	github.com/google/go-containerregistry v0.20.3
	oras.land/oras v1.3.0
)
