-- Chargeback: what every owner pays for, per month (UTC).
--
-- An owner pays for what its envelopes carried, whoever ran there. Unfunded time is charged to nobody.
-- @chart bars x=month y=gpu_hours by=owner
-- @check milli_gpu_seconds = charges by month, owner, flavor
-- @check credits = credits by month, owner, flavor
SELECT
    month,
    owner,
    flavor,
    sum(milli_gpu_seconds)::BIGINT / 3600000 AS gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (class = 'owned'), 0)::BIGINT / 3600000 AS owned_gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (class = 'shared'), 0)::BIGINT / 3600000 AS shared_gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (class = 'borrowed'), 0)::BIGINT / 3600000 AS borrowed_gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (role = 'Spare'), 0)::BIGINT / 3600000 AS spare_gpu_hours,
    sum(milli_gpu_seconds_rated)::DOUBLE / 3.6e9 AS credits,
    sum(milli_gpu_seconds)::BIGINT AS milli_gpu_seconds
FROM charges
GROUP BY ALL
ORDER BY month, gpu_hours DESC, owner, flavor
