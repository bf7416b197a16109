-- Usage: what every envelope carries and has spent, and when its hours or credits run out.
--
-- GPUs are those at the period's end. What is spent counts from the start of the envelope's present window, as its caps
-- do; unfunded time costs nobody anything. The pace is that of the last seven days, or of the window or the lake if they
-- are younger; out_of_hours and out_of_credits are when that pace, kept up, reaches the cap, if it does so before the
-- window ends.
-- @reads everything
-- @chart bars x=owner y=gpu_hours by=envelope
-- @check milli_gpu_seconds = window by budget, envelope
WITH held AS (
    SELECT
        budget,
        envelope,
        sum(gpus) FILTER (role = 'Active' AND class = 'owned') AS owned_gpus,
        sum(gpus) FILTER (role = 'Active' AND class = 'shared') AS shared_gpus,
        sum(gpus) FILTER (role = 'Active' AND class = 'borrowed') AS borrowed_gpus,
        sum(gpus) FILTER (role = 'Active' AND class = 'unfunded') AS unfunded_gpus,
        sum(gpus) FILTER (role = 'Spare') AS spare_gpus
    FROM ledger
    SEMI JOIN payers AS e ON e.budget = ledger.budget AND e.name = envelope AND e.owner = ledger.owner
        AND e.flavor = ledger.flavor
    WHERE is_open
    GROUP BY budget, envelope
),
paces AS (
    SELECT
        budget,
        name AS envelope,
        greatest(getvariable('until') - 7 * 86400, coalesce(start, 0), getvariable('begin')) AS since
    FROM envelopes
),
spent AS (
    SELECT
        l.budget,
        l.envelope,
        sum(l.milli_gpus * (l.ended - greatest(l.began, coalesce(e.start, l.began)))) AS milli_gpu_seconds,
        sum(l.milli_gpus * (l.ended - greatest(l.began, coalesce(e.start, l.began)))::HUGEINT * coalesce(l.rate_milli, 0))
            AS rated,
        sum(l.milli_gpus * greatest(0, l.ended - greatest(l.began, p.since))) AS paced,
        sum(l.milli_gpus * greatest(0, l.ended - greatest(l.began, p.since))::HUGEINT * coalesce(l.rate_milli, 0))
            AS paced_rated
    FROM paid AS l
    JOIN payers AS e ON e.budget = l.budget AND e.name = l.envelope AND e.owner = l.owner AND e.flavor = l.flavor
    JOIN paces AS p ON p.budget = l.budget AND p.envelope = l.envelope
    WHERE l.ended > coalesce(e.start, l.began)
    GROUP BY l.budget, l.envelope
),
figures AS (
    SELECT
        e.*,
        coalesce(s.milli_gpu_seconds, 0) AS used,
        coalesce(s.rated, 0)::DOUBLE / 3.6e6 AS used_millicredits,
        greatest(1, getvariable('until') - p.since) AS pace_seconds,
        coalesce(s.paced, 0) AS paced,
        coalesce(s.paced_rated, 0)::DOUBLE / 3.6e6 AS paced_millicredits
    FROM envelopes AS e
    JOIN paces AS p ON p.budget = e.budget AND p.envelope = e.name
    LEFT JOIN spent AS s ON s.budget = e.budget AND s.envelope = e.name
)
SELECT
    f.budget,
    f.name AS envelope,
    b.owner,
    f.flavor,
    f.concurrency,
    coalesce(h.owned_gpus, 0)::BIGINT AS owned_gpus,
    coalesce(h.shared_gpus, 0)::BIGINT AS shared_gpus,
    coalesce(h.borrowed_gpus, 0)::BIGINT AS borrowed_gpus,
    coalesce(h.unfunded_gpus, 0)::BIGINT AS unfunded_gpus,
    coalesce(h.spare_gpus, 0)::BIGINT AS spare_gpus,
    f.used::BIGINT / 1000 AS gpu_seconds,
    f.used::BIGINT / 3600000 AS gpu_hours,
    f.max_gpu_milliseconds / 3600000 AS max_gpu_hours,
    CASE WHEN f.max_gpu_milliseconds IS NOT NULL THEN greatest(0, f.max_gpu_milliseconds - f.used)::DOUBLE / 3600000 END
        AS gpu_hours_left,
    f.paced::DOUBLE / 3600000 / (f.pace_seconds / 86400) AS gpu_hours_a_day,
    iso(exhausted(f.max_gpu_milliseconds, f.used, f.paced, f.pace_seconds, f."end")) AS out_of_hours,
    f.used_millicredits / 1000 AS credits,
    f.max_millicredits / 1000 AS max_credits,
    CASE WHEN f.max_millicredits IS NOT NULL THEN greatest(0, f.max_millicredits - f.used_millicredits) / 1000 END
        AS credits_left,
    iso(exhausted(f.max_millicredits, f.used_millicredits, f.paced_millicredits, f.pace_seconds, f."end")) AS out_of_credits,
    f.used::BIGINT AS milli_gpu_seconds
FROM figures AS f
JOIN budgets AS b ON b.name = f.budget
LEFT JOIN held AS h ON h.budget = f.budget AND h.envelope = f.name
ORDER BY counted(f.budget), counted(f.name), f.budget, f.name
