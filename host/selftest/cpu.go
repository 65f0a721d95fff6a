package selftest

func cpuAttacks() []Attack      { return nil }
func memoryAttacks() []Attack   { return nil }
func compileAttacks() []Attack  { return nil }
func outputAttacks() []Attack   { return nil }
func hostCallAttacks() []Attack { return nil }
func stateAttacks() []Attack    { return nil }
