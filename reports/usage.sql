-- Use of every envelope at the cycle's time, from the ledger that each lease carries (spec §3.6).
-- Variables: at (Unix seconds), spare_milli (what a spare GPU costs of a whole one, in thousandths).
-- A charge counts when it falls at or after the envelope's present start; unfunded time costs nobody anything.
WITH claims AS (
    SELECT
        budget,
        envelope,
        role,
        len(ordinals) AS gpus,
        len(ordinals) * CASE role WHEN 'Spare' THEN getvariable('spare_milli') ELSE 1000 END AS milli_gpus,
        CASE WHEN NOT closed THEN funding[-1]['class'] END AS class,
        funding
    FROM leases
    WHERE budget IS NOT NULL
),
held AS (
    SELECT
        budget,
        envelope,
        sum(gpus) FILTER (role = 'Active' AND class = 'owned') AS owned_gpus,
        sum(gpus) FILTER (role = 'Active' AND class = 'shared') AS shared_gpus,
        sum(gpus) FILTER (role = 'Active' AND class = 'borrowed') AS borrowed_gpus,
        sum(gpus) FILTER (role = 'Active' AND class = 'unfunded') AS unfunded_gpus,
        sum(gpus) FILTER (role = 'Spare' AND class IS NOT NULL) AS spare_gpus
    FROM claims
    GROUP BY budget, envelope
),
segments AS (
    SELECT budget, envelope, milli_gpus, unnest(funding) AS segment FROM claims
),
charged AS (
    SELECT
        s.budget,
        s.envelope,
        sum(s.milli_gpus * greatest(0,
            coalesce(s.segment['to'], getvariable('at')) - greatest(s.segment['from'], coalesce(e.start, 0)))
        ) AS milli_gpu_seconds
    FROM segments AS s
    JOIN envelopes AS e ON e.budget = s.budget AND e.name = s.envelope
    WHERE s.segment['class'] <> 'unfunded'
    GROUP BY s.budget, s.envelope
)
SELECT
    e.budget,
    e.name AS envelope,
    b.owner,
    e.flavor,
    e.concurrency,
    coalesce(h.owned_gpus, 0)::BIGINT AS owned_gpus,
    coalesce(h.shared_gpus, 0)::BIGINT AS shared_gpus,
    coalesce(h.borrowed_gpus, 0)::BIGINT AS borrowed_gpus,
    coalesce(h.unfunded_gpus, 0)::BIGINT AS unfunded_gpus,
    coalesce(h.spare_gpus, 0)::BIGINT AS spare_gpus,
    coalesce(c.milli_gpu_seconds, 0)::BIGINT / 1000 AS gpu_seconds,
    coalesce(c.milli_gpu_seconds, 0)::BIGINT / 3600000 AS gpu_hours
FROM envelopes AS e
JOIN budgets AS b ON b.name = e.budget
LEFT JOIN held AS h ON h.budget = e.budget AND h.envelope = e.name
LEFT JOIN charged AS c ON c.budget = e.budget AND c.envelope = e.name
ORDER BY e.budget, e.name
