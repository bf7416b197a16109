-- Usage: what every envelope carries and has spent, and when its hours or credits run out.
--
-- GPUs are those at the period's end. What is spent counts from the start of the envelope's present window, as its caps
-- do; unfunded time costs nobody anything. The pace is that of the last seven days, or of the window or the lake if they
-- are younger. An envelope runs out when that pace, kept up, reaches its cap of hours or of credits, if it does so before
-- its window ends. What is committed to running work is not subtracted from what is left; budgets usage shows it.
-- @reads everything
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
            AS paced_rated,
        sum(l.milli_gpus * greatest(0, least(l.ended, p.since) - greatest(l.began, p.since - 7 * 86400))) AS paced_before
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
        coalesce(s.paced_rated, 0)::DOUBLE / 3.6e6 AS paced_millicredits,
        CASE WHEN p.since - 7 * 86400 >= greatest(getvariable('begin'), coalesce(e.start, 0)) THEN coalesce(s.paced_before, 0)
        END AS paced_before
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
    f.paced_before::DOUBLE / 3600000 / 7 AS gpu_hours_a_day_before,
    iso(exhausted(f.max_gpu_milliseconds, f.used, f.paced, f.pace_seconds, f."end")) AS out_of_hours,
    iso(f.start) AS window_starts,
    iso(f."end") AS window_ends,
    f.used_millicredits / 1000 AS credits,
    f.max_millicredits / 1000 AS max_credits,
    CASE WHEN f.max_millicredits IS NOT NULL THEN greatest(0, f.max_millicredits - f.used_millicredits) / 1000 END
        AS credits_left,
    iso(exhausted(f.max_millicredits, f.used_millicredits, f.paced_millicredits, f.pace_seconds, f."end")) AS out_of_credits,
    f.used::BIGINT AS milli_gpu_seconds
FROM figures AS f
JOIN budgets AS b ON b.name = f.budget
LEFT JOIN held AS h ON h.budget = f.budget AND h.envelope = f.name
ORDER BY counted(f.budget), counted(f.name), f.budget, f.name;

-- @lead
WITH sums AS (
    SELECT
        count(*) AS envelopes,
        sum(gpu_hours) AS spent,
        sum(gpu_hours) FILTER (max_gpu_hours IS NOT NULL) AS capped,
        sum(max_gpu_hours) AS cap,
        sum(gpu_hours_left) AS hours_left,
        count(*) FILTER (out_of_hours IS NOT NULL OR out_of_credits IS NOT NULL) AS running_out,
        min_by(budget || '/' || envelope || ' of ' || owner, least(out_of_hours, out_of_credits)) AS first_name,
        min(least(out_of_hours, out_of_credits)) AS first_out,
        list(budget || '/' || envelope ORDER BY budget, envelope) FILTER (window_ends <= iso(getvariable('until'))) AS closed,
        max(epoch(window_ends::TIMESTAMP)::BIGINT) FILTER (window_ends <= iso(getvariable('until'))) AS closed_at,
        sum(gpu_hours_left) FILTER (window_ends <= iso(getvariable('until'))) AS unused,
        list(budget || '/' || envelope ORDER BY budget, envelope) FILTER (
            owned_gpus + shared_gpus + borrowed_gpus <= concurrency
            AND owned_gpus + shared_gpus + borrowed_gpus + spare_gpus > concurrency
        ) AS standing_by
    FROM report
)
SELECT CASE
    WHEN envelopes = 0 THEN 'There is no envelope.'
    WHEN cap IS NULL THEN number(spent) || ' GPU-hours are spent; no envelope has a cap of GPU-hours.'
    ELSE number(capped) || ' of '
        || CASE WHEN spent > capped THEN 'the ' || number(cap) || ' GPU-hours under caps' ELSE number(cap) || ' GPU-hours' END
        || ' (' || share(capped, cap) || ') are spent and ' || number(hours_left) || ' are left.'
END || ' ' || CASE
    WHEN envelopes = 0 THEN ''
    WHEN running_out = 0 AND len(closed) = envelopes THEN ''
    WHEN running_out = 0 THEN 'At the pace of the last week nothing runs out before its window ends.'
    ELSE 'At the pace of the last week ' || counted_as(running_out, 'envelope')
        || CASE WHEN running_out = 1 THEN ' runs out: ' ELSE ' run out, the first of them ' END || first_name
        || CASE WHEN first_out <= iso(getvariable('until')) THEN ': nothing is left now.'
            ELSE ' on ' || day(epoch(first_out::TIMESTAMP)) || '.' END
END AS pace, windows_closed(closed, closed_at, unused) AS windows, CASE
    WHEN len(standing_by) > 0 THEN 'More GPUs of ' || listed(standing_by) || ' are in use than at most, as a spare counts '
        || (SELECT (arg_max(milli, coalesce(since, 0)) / 1000)::VARCHAR FROM discounts) || ' of a GPU.'
END AS spares
FROM sums;

-- @figures
WITH sums AS (
    SELECT
        sum(gpu_hours) AS spent,
        sum(gpu_hours) FILTER (max_gpu_hours IS NOT NULL) AS capped,
        sum(gpu_hours_left) AS hours_left,
        sum(max_gpu_hours) AS cap,
        sum(credits) AS credits,
        sum(credits_left) AS credits_left,
        sum(gpu_hours_a_day) AS pace,
        sum(gpu_hours_a_day) FILTER (gpu_hours_a_day_before IS NOT NULL) AS pace_comparable,
        sum(gpu_hours_a_day_before) AS pace_before,
        sum(owned_gpus + shared_gpus + borrowed_gpus + spare_gpus) AS gpus,
        sum(unfunded_gpus) AS unfunded
    FROM report
),
most AS (
    SELECT owner, sum(gpu_hours) AS spent FROM report GROUP BY owner ORDER BY spent DESC, owner LIMIT 1
)
SELECT 'Spent' AS label, number(sums.spent) || ' GPU-hours' AS value,
    CASE
        WHEN sums.capped < sums.spent THEN number(sums.spent - sums.capped) || ' of them without a cap'
        ELSE 'in the present windows'
    END AS note
FROM sums
UNION ALL
SELECT 'Left', number(hours_left) || ' GPU-hours', 'of ' || number(cap) || ' under caps' FROM sums WHERE cap IS NOT NULL
UNION ALL
SELECT 'Credits left', number(credits_left), number(credits) || ' spent' FROM sums WHERE credits_left IS NOT NULL
UNION ALL
SELECT 'Pace of the last week', number(pace) || ' GPU-hours a day',
    coalesce(nullif(replace(change(pace_comparable, pace_before), 'in the period', 'in the week'), ''), '')
FROM sums
UNION ALL
SELECT 'In use now', counted_as(gpus, 'GPU'),
    CASE WHEN unfunded > 0 THEN 'and ' || number(unfunded) || ' that nobody pays' ELSE 'all of them paid' END
FROM sums
UNION ALL
SELECT 'Most by', most.owner, share(most.spent, sums.spent) || ' of what is spent' FROM most, sums WHERE most.spent > 0;

-- @chart across: GPU-hours spent and left, by envelope
SELECT budget || '/' || envelope AS label, unnest([gpu_hours, gpu_hours_left]) AS y, unnest(['spent', 'left']) AS series
FROM report
WHERE gpu_hours > 0 OR gpu_hours_left IS NOT NULL
ORDER BY greatest(gpu_hours, coalesce(max_gpu_hours, 0)) DESC, label;

-- @table tree sum=GPUs in use, GPUs at most, GPU-hours spent, GPU-hours left, Credits left
SELECT
    owner AS "Owner",
    budget || '/' || envelope AS "Envelope",
    owned_gpus + shared_gpus + borrowed_gpus + spare_gpus AS "GPUs in use",
    concurrency AS "GPUs at most",
    gpu_hours AS "GPU-hours spent",
    gpu_hours_left AS "GPU-hours left",
    CASE WHEN max_credits IS NOT NULL THEN credits_left END AS "Credits left",
    least(out_of_hours, out_of_credits)::TIMESTAMP AS "Runs out",
    window_ends::TIMESTAMP AS "Window ends"
FROM report
