// Command web is the guest module with the tools that reach the network: http_fetch and
// web_search.
//
// Words: a page is an HTML document, a body the content of an answer, a window the part of
// a text that is returned, an engine a search engine.
//
// Answers of servers are hostile: they are read in one pass and without recursion, and
// memory for them is limited. The module may run in 64 MiB of memory.
package main

import (
	"html"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func init() {
	tool.Module("web", "0.1.0")
	tool.Config(configEngine, "duckduckgo")
	tool.Config(configURL, "https://html.duckduckgo.com/html/")
	tool.Config(configCX, "")
	tool.Register("http_fetch", "Fetch a URL and return the page as readable text, with its headings, lists, tables and links; "+
		"JSON and plain text as they are. A long page is returned in parts; the last line tells the offset to go on with.",
		httpFetch, tool.UsesNetwork(),
		tool.Errors(append([]string{
			"INVALID_URL: the URL has another scheme than https and http, a user name or no host",
			"UNSUPPORTED_TYPE: the answer is no text, or an image that cannot be shown",
			"TOO_LARGE: the answer to a POST, PUT, PATCH or DELETE is larger than network.max_response",
		}, failures...)...),
		tool.Limits("8 MiB of a body are read, or network.max_response if that is less; of more, the beginning",
			"text comes in parts of 50000 bytes, or max_bytes, at most 200000; each part is a request of its own",
			"UTF-8, UTF-16, Latin-1, Windows-1252 and Latin-9 are read; of other encodings what is ASCII",
			"no scripts are run; navigation is left out, and what a page hides is left out or marked as [hidden text: ...]; of a link to the same server the path alone is shown",
			"no cookies are kept, and nothing is sent in Authorization"),
		tool.Example(`{"url":"example.com"}`, "Reads https://example.com."),
		tool.Example(`{"url":"https://api.example.com/items","method":"POST","body":"{\"name\":\"x\"}"}`, "Sends JSON; Content-Type is filled in."))
	tool.Register("web_search", "Search the web and return titles, URLs and snippets. To read a result, fetch its URL.",
		webSearch, tool.UsesHostOf(configURL), ofEngine("brave"), ofEngine("google"), tool.PerMinute(10),
		tool.Errors(append([]string{
			"MISSING_CREDENTIALS: the engine needs a key, or an ID, that nobody has set; the text has the steps",
			"INVALID_CREDENTIALS: the engine refuses the key",
			"RATE_LIMITED: there were too many searches; the text or the hint says how long to wait",
			"BLOCKED: DuckDuckGo takes the program for a robot; wait, or set another engine",
			"SEARCH_FAILED: the engine answered with another status than 200; try other words, or later",
			"TOO_LARGE: the answer of the engine is larger than network.max_response",
			"TOOL_FAILED: there is no such engine, or no URL to ask it at; look at [web] in agent.toml",
		}, failures...)...),
		tool.Limits("a query of 400 characters, 10 results", "10 searches a minute in a session, each a second after the one before",
			"the engine is web.search in agent.toml: duckduckgo, which needs no key, brave or google"),
		tool.Example(`{"query":"go 1.26 release notes","num_results":3}`, "Finds three pages."))
	tool.Warm(func() { html.UnescapeString("&amp;") }) // makes the table of all entities
}

func main() {}

// failures are the errors of both tools, as "CODE: text", for a request without an answer.
var failures = []string{
	"DENIED: the rules of the network do not allow the host, the address or a redirect; the text names the rule that would",
	"DNS_FAILED: the name of the host leads nowhere",
	"CONNECT_FAILED: nobody answers at the address; look at the host and the port, or try again later",
	"TLS_FAILED: the certificate of the server is not good",
	"TIMED_OUT: there was no answer in time",
	"BAD_RESPONSE: what came is not HTTP, broke off, or cannot be read; look at the scheme and the port, or try again later",
}

// ofEngine returns an option of web_search: it asks for the key of the engine if the
// configuration selects the engine.
func ofEngine(name string) tool.Option {
	e := engines[name]
	return tool.UsesSecretWhen(configEngine, name, e.secret, e.header)
}
