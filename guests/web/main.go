// Command web is the guest module with the tools that reach the network: http_fetch
// and web_search.
//
// Words: a page is an HTML document, a body what an answer holds, a window the part of
// a text that is returned, an engine who is asked in a search.
//
// What servers send is hostile: it is read in one pass and without recursion, and what
// is kept of it is bounded. The module may run in 64 MiB of memory.
package main

import (
	"html"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func init() {
	tool.Module("web", "0.1.0")
	tool.Config(configEngine, "duckduckgo")
	tool.Config(configURL, engines["duckduckgo"].url)
	tool.Config(configCX, "")
	tool.Register("http_fetch", "Fetch a URL and return the page as readable text, with its headings, lists, tables and links; "+
		"JSON and plain text as they are. A long page is returned in parts; the last line tells the offset to go on with.",
		httpFetch, tool.UsesNetwork())
	tool.Register("web_search", "Search the web and return titles, URLs and snippets. To read a result, fetch its URL.",
		webSearch, tool.UsesHostOf(configURL), ofEngine("brave"), ofEngine("google"))
	tool.Warm(func() { html.UnescapeString("&amp;") }) // which makes the table of all entities
}

func main() {}

// ofEngine asks for the key of an engine, where that is the one that is set.
func ofEngine(name string) tool.Option {
	e := engines[name]
	return tool.UsesSecretWhen(configEngine, name, e.secret, e.header)
}
