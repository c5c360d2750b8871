"""Times in the machine code of rings: clocks, stamps, how long messages took.

The text is as `ring_assembly` says.
"""

TEXT = """
define internal i64 @now() alwaysinline {
  %t = CLOCK
  ret i64 %t
}

; The system's clock: microseconds since 1970.
define internal i64 @wall() {
  WALL
  ret i64 %us
}

; Take so many stamps, one after the other, from the clock at %clock: the first. Each is later than
; all that were taken, and not before the system's clock.
define i64 @treadle.stamp(ptr %clock, i64 %count) {
entry:
  %us = call i64 @wall()
  %physical = shl i64 %us, COUNTER_BITS
  %seen = load atomic i64, ptr %clock monotonic, align 8
  br label %again
again:
  %last = phi i64 [ %seen, %entry ], [ %other, %again ]
  %next = add i64 %last, 1
  %first = call i64 @llvm.smax.i64(i64 %next, i64 %physical)
  %before = sub i64 %first, 1
  %taken = add i64 %before, %count
  %exchange = cmpxchg ptr %clock, i64 %last, i64 %taken acq_rel acquire, align 8
  %other = extractvalue { i64, i1 } %exchange, 0
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %done, label %again
done:
  ret i64 %first
}

; Set a clock to a stamp, unless it is later already.
define void @treadle.merge(ptr %clock, i64 %stamp) {
  %before = atomicrmw max ptr %clock, i64 %stamp acq_rel, align 8
  ret void
}

; A message that was sent at a time, and is done at another.
define internal void @count.time(ptr %c, i64 %time, i64 %sent) alwaysinline {
  %histogram = @word(HISTOGRAM)
  %took = sub i64 %time, %sent
  %positive = call i64 @llvm.smax.i64(i64 %took, i64 8)
  %zeros = call i64 @llvm.ctlz.i64(i64 %positive, i1 false)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 3
  %top = lshr i64 %positive, %shift
  %fine = and i64 %top, 7
  %coarse = mul i64 %power, 8
  %bucket = or i64 %coarse, %fine
  %bucket.at = getelementptr i64, ptr %histogram, i64 %bucket
  %count = load i64, ptr %bucket.at
  %count.after = add i64 %count, 1
  store i64 %count.after, ptr %bucket.at
  ret void
}

; The same, where other threads count, too.
define internal void @count.shared(ptr %c, i64 %time, i64 %sent) alwaysinline {
  %histogram = @word(HISTOGRAM)
  %took = sub i64 %time, %sent
  %positive = call i64 @llvm.smax.i64(i64 %took, i64 8)
  %zeros = call i64 @llvm.ctlz.i64(i64 %positive, i1 false)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 3
  %top = lshr i64 %positive, %shift
  %fine = and i64 %top, 7
  %coarse = mul i64 %power, 8
  %bucket = or i64 %coarse, %fine
  %bucket.at = getelementptr i64, ptr %histogram, i64 %bucket
  %before = atomicrmw add ptr %bucket.at, i64 1 monotonic, align 8
  ret void
}

; Add to the histogram how long %n messages took, whose times of sending are in a ring of stamps.
define void @treadle.measure(ptr %c, ptr %stamps, i64 %first, i64 %mask, i64 %n) {
entry:
  %time = call i64 @now()
  %some = icmp ne i64 %n, 0
  br i1 %some, label %one, label %over
one:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %number = add i64 %first, %i
  %place = and i64 %number, %mask
  %stamp.at = getelementptr i64, ptr %stamps, i64 %place
  %sent = load i64, ptr %stamp.at
  call void @count.shared(ptr %c, i64 %time, i64 %sent)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %one, label %over
over:
  ret void
}
"""
