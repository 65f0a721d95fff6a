;; The smallest loop that does something.
(module
  (func (export "run")
    (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $again))))
