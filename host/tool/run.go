package tool

// Run says how a tool is run whose module knows no tools. In its texts, {NAME} stands
// for the argument NAME of a call, {args} for all of them as JSON, and {{ for a brace.
type Run struct {
	// Args are the arguments of a command, behind its name. One in which an argument
	// stands that the call does not have is left out. One that is nothing but an
	// argument which is an array becomes as many.
	Args []string `json:"args,omitempty"`
	// Stdin is what a command reads, and Input what a plugin does, which without it
	// reads {args}.
	Stdin string `json:"stdin,omitempty"`
	Input string `json:"input,omitempty"`
	// Env are the environment variables of a command.
	Env map[string]string `json:"env,omitempty"`
	// Function is the export of a plugin that is called.
	Function string `json:"function,omitempty"`
}
