// Receives events with the Go SDK of CloudEvents, which is strict, and prints one line of JSON for each: what it made of the
// event, and what it finds wrong with it. The first line is the URL at which it listens.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

type seen struct {
	Type, Source, Subject, ID string
	Extensions                map[string]any
	Actor                     *struct {
		Subject string            `json:"subject"`
		Act     map[string]string `json:"act"`
	}
	Wrong string
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	out := json.NewEncoder(os.Stdout)
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(r))
		if err == nil {
			err = event.Validate()
		}
		if err != nil {
			out.Encode(seen{Type: r.Header.Get("Ce-Type"), Source: r.Header.Get("Ce-Source"), Wrong: err.Error()})
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		one := seen{
			Type: event.Type(), Source: event.Source(), Subject: event.Subject(), ID: event.ID(),
			Extensions: event.Extensions(),
		}
		// As clients decode it: an `act` that held anything but texts would fail here.
		if err := event.DataAs(&struct{ Actor any }{&one.Actor}); err != nil {
			one.Wrong = err.Error()
		}
		out.Encode(one)
	})))
}
