-- GPU-seconds in thousandths that each envelope has paid since its window began: every funded second of every lease,
-- an Active GPU at 1000, a spare one at the discount of its time.
WITH segments AS (
    SELECT budget, envelope, role, len(ordinals) AS gpus, unnest(funding) AS part FROM leases
),
spans AS (
    SELECT
        budget, envelope, role, gpus, part['class'] AS class,
        part['from'] AS began, coalesce(part['to'], $now) AS ended
    FROM segments
),
discounts AS (
    SELECT
        milli, coalesce(since, 0) AS since,
        coalesce(lead(since) OVER (ORDER BY since NULLS FIRST), 9223372036854775807) AS until
    FROM seen_discounts
),
weights AS (
    SELECT s.*, 1000 AS milli, s.began AS low, s.ended AS high FROM spans AS s WHERE role = 'Active'
    UNION ALL
    SELECT s.*, d.milli, greatest(s.began, d.since), least(s.ended, d.until)
    FROM spans AS s, discounts AS d
    WHERE role = 'Spare'
)
SELECT
    e.budget, e.name,
    coalesce(sum(w.gpus * w.milli * greatest(0, w.high - greatest(w.low, coalesce(e.start, w.low)))), 0) AS milli
FROM envelopes AS e
LEFT JOIN weights AS w ON w.budget = e.budget AND w.envelope = e.name AND w.class <> 'unfunded'
GROUP BY e.budget, e.name
ORDER BY e.budget, e.name
