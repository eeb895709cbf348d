# A modelled disk gives back what it was given, and takes its time for it.
dd if=/dev/zero of=/tmp/store bs=1M count=32 2> /dev/null
loop=$(losetup -f)
losetup "$loop" /tmp/store
model="rotation_ns=8333333 outer_rate=175000000 inner_rate=83000000 zones=16
seek_base_ns=1000000 seek_sqrt_ns=12500000 seek_linear_ns=2500000
write_settle_ns=1000000 switch_ns=1000000 overhead_ns=100000
interface_rate=600000000 depth=1 cache_bytes=0 ahead_bytes=0"
dmsetup create smoke --table "0 65536 dss-disk $loop hdd $(echo $model)"
dd if=/dev/urandom of=/tmp/data bs=1M count=4 2> /dev/null
dd if=/tmp/data of=/dev/mapper/smoke bs=64k conv=fsync 2> /dev/null
echo 3 > /proc/sys/vm/drop_caches
dd if=/dev/mapper/smoke bs=64k count=64 2> /dev/null | cmp - /tmp/data
begin=$(cut -d' ' -f1 /proc/uptime | tr -d .)
for block in 7 900 100 500 3 1000 42 800 77 600; do
	dd if=/dev/mapper/smoke of=/dev/null bs=4k count=1 skip=$((block * 8)) \
		iflag=direct 2> /dev/null
done
took=$(($(cut -d' ' -f1 /proc/uptime | tr -d .) - begin))
echo "ten reads took ${took}0 ms"
# A seek and half a turn are about 13 ms; none is under 2 ms.
test "$took" -ge 2
dmsetup status smoke
dmsetup message smoke 0 reset
dmsetup status smoke | grep -q 'reads=0 '
if dmsetup create bad --table "0 65536 dss-disk $loop hdd nonsense=1" \
	2> /dev/null; then
	echo "a parameter that is none was taken"
	exit 1
fi
dmsetup remove smoke
losetup -d "$loop"
rm /tmp/store /tmp/data
