// A strict client of OpenID Connect (go-oidc) that trusts a server as an issuer: it finds the keys by discovery, and takes
// the token on standard input, for the audience that is named and with an algorithm that discovery lists.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: oidc-client ISSUER AUDIENCE <TOKEN")
	}
	token, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	verified, err := provider.Verifier(&oidc.Config{ClientID: os.Args[2]}).Verify(ctx, strings.TrimSpace(string(token)))
	if err != nil {
		log.Fatal(err)
	}
	var listed struct {
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&listed); err != nil {
		log.Fatal(err)
	}
	said, err := json.Marshal(map[string]any{"subject": verified.Subject, "algorithms": listed.Algorithms})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(said))
}
