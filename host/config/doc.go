// Package config reads agent.toml: the settings of a user or a project, as typed values
// that know their origin.
//
// A setting gives a key ("model.name") a value. Layers set keys, and a later layer wins:
// defaults, the user's file, the project's file, the environment (STOCKADE_MODEL_NAME). Flags
// come last and belong to the program.
//
// A project file comes with a repository that somebody else may have written. So each key has
// a class that limits what a project may do to it: it may set a preference, only lower a
// limit, and only turn a switch to the stricter side. It may set a key of class authority (the
// server that is asked, the directories that tools see) only when a person has trusted exactly
// this content at exactly this place ([File.Trusted]). To a list of refused tools it may only
// add. A project never decides which secret is used, which hosts are refused and who is
// believed. All other settings in a project file are ignored, with a [Warning] to the user.
//
//	user, err := config.Parse(userPath, config.User, data) // read by policyfile.User(userPath).Bytes()
//	project, err := config.Load("/home/u/ws/agent.toml", config.Project)
//	project.Trusted = trust.Covers(project) // see settings.Trust
//	cfg, warnings, err := config.Merge(user, project, os.Getenv)
//
// One table in this package (keys.go) holds all keys with fixed names: field, range,
// default, class and text. It drives files, the environment and [Annotated] (the
// agent.toml at the root of the repository), through package keys.
//
// The tables below profiles and prices have names that a person chooses, as in
// [profiles.work]; entries.go has their keys. A key in them is set like any other, under its
// full name.
//
// Secrets are never in a file: model.api_key_env names the environment variable that holds
// the provider's key, model.key names the secret, and this package reads neither.
package config
