package tool

// Values of [Manifest.ABI] for modules that were made for other hosts.
const (
	ABICommand  = "wasi:command"       // a program for WASI preview 1
	ABIExtism   = "extism:plugin"      // an Extism plugin that cannot list its tools
	ABIServlet  = "mcp.run:servlet"    // an Extism plugin for mcp.run or hyper-mcp v1
	ABIHyperMCP = "hyper-mcp:plugin@2" // an Extism plugin for hyper-mcp v2
)

// Kind describes a module that was made for another host, for people. It is empty for a module
// that was made for this host.
func (m Manifest) Kind() string {
	return map[string]string{
		ABICommand: "a WASI command", ABIExtism: "an Extism plugin",
		ABIServlet: "an Extism plugin for mcp.run or hyper-mcp v1", ABIHyperMCP: "an Extism plugin for hyper-mcp v2",
	}[m.ABI]
}
