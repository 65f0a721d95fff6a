package tool

// ABIs of modules that were made for other hosts.
const (
	ABICommand  = "wasi:command"       // a program for WASI preview 1
	ABIExtism   = "extism:plugin"      // an Extism plugin that knows no tools
	ABIServlet  = "mcp.run:servlet"    // one for mcp.run or hyper-mcp v1
	ABIHyperMCP = "hyper-mcp:plugin@2" // one for hyper-mcp v2
)

// Kind says in words what a module is that was made for another host; empty: it was
// made for this one.
func (m Manifest) Kind() string {
	return map[string]string{
		ABICommand: "a WASI command", ABIExtism: "an Extism plugin",
		ABIServlet: "an Extism plugin for mcp.run or hyper-mcp v1", ABIHyperMCP: "an Extism plugin for hyper-mcp v2",
	}[m.ABI]
}
