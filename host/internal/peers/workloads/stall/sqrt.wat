;; Square roots and quotients of denormal numbers.
(module
  (func (export "run")
    (local $n i64) (local $x f64) (local $sum f64)
    (loop $again
      (local.set $n (i64.or (i64.add (local.get $n) (i64.const 2)) (i64.const 1)))
      (local.set $x (f64.reinterpret_i64 (i64.and (local.get $n) (i64.const 0xfffffff))))
      (local.set $sum (f64.add (local.get $sum) (f64.sqrt (local.get $x))))
      (local.set $sum (f64.add (local.get $sum) (f64.sqrt (f64.div (local.get $x) (f64.const 3)))))
      (local.set $sum (f64.add (local.get $sum) (f64.sqrt (f64.div (local.get $x) (f64.const 5)))))
      (local.set $sum (f64.add (local.get $sum) (f64.sqrt (f64.div (local.get $x) (f64.const 7)))))
      ;; Stored, so that no computation can be removed.
      (f64.store (i32.const 0) (local.get $sum))
      (br $again)))
  (memory 1))
