// Command command is an external tool for ikigai. With --schema it prints its description;
// otherwise it reads its arguments from standard input and prints its result as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const schema = `{"name":"notes","description":"Read and write notes.","parameters":{
	"read":{"type":"string","description":"A file to read."},
	"write":{"type":"string"},"text":{"type":"string"},"exit":{"type":"integer"}},"returns":{"type":"object"}}`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--schema" {
		fmt.Println(schema)
		return
	}
	var in struct {
		Read, Write, Text string
		Exit              int
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := map[string]any{"env": os.Environ(), "args": os.Args}
	out["dir"], _ = os.Getwd()
	var err error
	switch {
	case in.Exit > 0:
		fmt.Fprintln(os.Stderr, "sorry")
		os.Exit(in.Exit)
	case in.Exit == -1:
		panic("oh")
	case in.Text != "":
		fmt.Print(in.Text)
		return
	case in.Read != "":
		var data []byte
		data, err = os.ReadFile(in.Read)
		out["content"] = string(data)
	case in.Write != "":
		err = os.WriteFile(in.Write, []byte("written"), 0o600)
		out["content"] = "written"
	}
	if err != nil {
		out["error"] = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
}
