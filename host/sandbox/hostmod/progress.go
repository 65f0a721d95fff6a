package hostmod

const maxNote = 200

// progressReport is progress.report.
func progressReport(g *guest) error {
	done, total := g.stack[0], g.stack[2]
	note, err := g.mem.String("note", g.u32(3), min(g.u32(4), maxNote), maxNote)
	if err != nil {
		return err
	}
	if c := g.call; c != nil && c.Progress != nil {
		var known *uint64
		if g.u32(1) != 0 {
			known = &total
		}
		c.Progress(done, known, note)
	}
	return nil
}

// progressCancelled is progress.cancelled.
func progressCancelled(g *guest) error {
	g.stack[0] = 0
	if g.ctx.Err() != nil {
		g.stack[0] = 1
	}
	return nil
}
