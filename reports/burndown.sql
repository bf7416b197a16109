-- Burndown: what was left of every envelope's hours, step by step, in its present window.
--
-- spent is what the envelope paid for in the step, left what remained of maxGPUHours at its end (nothing where it has no
-- such cap). The report on usage says when the rest runs out at the pace of the last days.
-- @reads everything
-- @chart lines x=time y=gpu_hours_left by=envelope
-- @chart bars x=time y=gpu_hours_spent by=envelope
-- @check milli_gpu_seconds = window by budget, name:envelope
WITH steps AS (
    SELECT unnest(generate_series(
        getvariable('since') // getvariable('bucket') * getvariable('bucket'),
        getvariable('until') - 1,
        getvariable('bucket')
    )) AS step
),
windows AS (
    SELECT budget, name, owner, flavor, max_gpu_milliseconds, coalesce(start, getvariable('begin')) AS start FROM payers
),
parts AS (
    -- What was charged before the first step counts in it.
    SELECT
        l.budget,
        l.envelope,
        greatest(s.step, getvariable('since')) AS begun,
        s.step,
        l.milli_gpus * (
            least(l.ended, s.step + getvariable('bucket'))
            - greatest(l.began, w.start, CASE WHEN s.step <= getvariable('since') THEN 0 ELSE s.step END)
        ) AS charge
    FROM paid AS l
    JOIN windows AS w ON w.budget = l.budget AND w.name = l.envelope AND w.owner = l.owner AND w.flavor = l.flavor
    JOIN steps AS s ON l.began < s.step + getvariable('bucket') AND (l.ended > s.step OR s.step <= getvariable('since'))
),
spent AS (
    SELECT budget, envelope, step, sum(greatest(0, charge)) AS charge FROM parts GROUP BY ALL
)
SELECT
    iso(s.step) AS time,
    w.budget || '/' || w.name AS envelope,
    w.budget,
    w.name,
    w.flavor,
    coalesce(p.charge, 0)::BIGINT / 3600000 AS gpu_hours_spent,
    (w.max_gpu_milliseconds - sum(coalesce(p.charge, 0)) OVER sofar)::DOUBLE / 3600000 AS gpu_hours_left,
    coalesce(p.charge, 0)::BIGINT AS milli_gpu_seconds
FROM steps AS s
CROSS JOIN windows AS w
LEFT JOIN spent AS p ON p.budget = w.budget AND p.envelope = w.name AND p.step = s.step
WHERE s.step + getvariable('bucket') > w.start OR p.charge > 0
WINDOW sofar AS (PARTITION BY w.budget, w.name ORDER BY s.step)
ORDER BY s.step, counted(w.budget), counted(w.name), w.budget, w.name
