-- GPU-seconds in thousandths that each envelope has paid since its window began: every funded second of every lease,
-- an Active GPU at 1000, a spare one at the discount of its time; of leases that were pruned, what the balances say.
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
pruned AS (
    SELECT budget, envelope, unnest(spans) AS part FROM balances
),
weights AS (
    SELECT budget, envelope, gpus * 1000 AS milli, began AS low, ended AS high
    FROM spans
    WHERE role = 'Active' AND class <> 'unfunded'
    UNION ALL
    SELECT s.budget, s.envelope, s.gpus * d.milli, greatest(s.began, d.since), least(s.ended, d.until)
    FROM spans AS s, discounts AS d
    WHERE s.role = 'Spare' AND s.class <> 'unfunded'
    UNION ALL
    SELECT budget, envelope, part['milli_gpus'], part['from'], part['to'] FROM pruned
)
SELECT
    e.budget, e.name,
    coalesce(sum(w.milli * greatest(0, w.high - greatest(w.low, coalesce(e.start, w.low)))), 0) AS milli
FROM envelopes AS e
LEFT JOIN weights AS w ON w.budget = e.budget AND w.envelope = e.name
GROUP BY e.budget, e.name
ORDER BY e.budget, e.name
