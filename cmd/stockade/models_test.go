package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// standIn starts a server on loopback that speaks as several providers do, and puts its
// address into the variable NAME_URL. It answers every request for a model with "NAME
// says hello.", or with the status that is given, and writes into the file NAME what was
// asked, with which key and for which model:
//
//	standin NAME [STATUS]
func standIn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: standin NAME [STATUS]")
	}
	name, status := args[0], 0
	if len(args) == 2 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		status = n
	}
	log, err := os.Create(ts.MkAbs(name))
	ts.Check(err)
	var mu sync.Mutex
	says := name + " says hello."
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model string `json:"model"`
		}
		body, _ := io.ReadAll(r.Body)    // a body that was cut is not JSON
		_ = json.Unmarshal(body, &asked) // nor is the empty body of a GET
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(log, "%s %s key=%q model=%q\n", r.Method, r.URL, key, asked.Model)
		if status != 0 {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"%s is out of order"}}`, name)
			return
		}
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprintf(w, `{"data":[{"id":"%s-small"},{"id":"%s-large"}]}`, name, name)
		case "/api/tags":
			fmt.Fprintf(w, `{"models":[{"name":"%s:8b"},{"name":"two words:1b"}]}`, name)
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"+
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000000,\"completion_tokens\":1000000}}\n\ndata: [DONE]\n\n", says)
		default:
			http.NotFound(w, r)
		}
	}))
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
		_ = log.Close() // its last line was read already
	})
	ts.Setenv(name+"_URL", server.URL)
	ts.Setenv(name+"_HOST", strings.TrimPrefix(server.URL, "http://"))
}
