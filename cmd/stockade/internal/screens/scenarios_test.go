//go:build screens

package screens

// scenario is what a person does, and which screens are looked at.
type scenario struct {
	name string
	env  []string
	play func(s *screen, looks func(name string))
}

// scenarios are played at each size.
var scenarios = []scenario{{
	name: "dumb",
	play: func(s *screen, looks func(string)) {
		s.answers(
			calls("I correct it and look whether the notes pass.", edit("order new rope", "order a new rope"), edit("two goats", "Two goats"), bash("make test")),
			text("One **task** is left."))
		s.says("TERM=dumb stockade chat")
		s.until(`^> $|^>$`)
		looks("first screen")
		s.says("correct the notes")
		s.until(`yes`)
		looks("question")
	},
}}
