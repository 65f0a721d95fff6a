;; Calls without a loop: a tree of 2^40, which takes too long to end.
(module
  (func $tree (param $depth i32)
    (if (local.get $depth)
      (then
        (call $tree (i32.sub (local.get $depth) (i32.const 1)))
        (call $tree (i32.sub (local.get $depth) (i32.const 1))))))
  (func (export "run")
    (call $tree (i32.const 40))))
