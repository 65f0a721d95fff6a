package config

import "github.com/stockade-dev/stockade/host/config/keys"

// Annotated returns an agent.toml that sets nothing and explains every key, each
// commented out with its default.
func Annotated() string {
	return fileKeys.Sample(keys.Sample{
		Head: `# The configuration of stockade. Every key is shown with its default, commented out.
#
# Yours: $XDG_CONFIG_HOME/stockade/agent.toml. A project's: ./agent.toml.
# Later wins: defaults, user, project, environment, flags. A key's variable in
# the environment is STOCKADE_ and its name: STOCKADE_MODEL_NAME for model.name.
# What a project file may set stands with each key; ` + "`stockade config trust`" + ` shows
# what one asks for.
`,
		Note: func(i int) string {
			if table[i].class.fileOnly() {
				return table[i].class.String() + "; not from the environment"
			}
			return table[i].class.String()
		},
	})
}
