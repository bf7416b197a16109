-- FOCUS: charges in the columns of the FinOps Open Cost and Usage Specification, version 1.2.
--
-- A row per month, payer, envelope, run, flavor, class and role; what leases had been charged that were pruned before the
-- lake began is of no run. All columns that FOCUS 1.2 makes mandatory are there, and those conditional ones that Jobtree has
-- something to say in; columns of its own begin with x_. Jobtree prices in credits; FOCUS wants costs in a national currency,
-- so say what a credit costs: --set currency=USD --set credit_price=1.50. Charges without a credit rate cost nothing. There
-- are no discounts: list, contracted, effective and billed cost are one.
-- @needs currency
-- @needs credit_price
-- @owner BillingAccountId
-- @check x_MilliGpuSeconds = charges by x_Month:month, BillingAccountId:owner, SubAccountId:run_owner
-- @check PricingCurrencyEffectiveCost = credits by x_Month:month, BillingAccountId:owner, SubAccountId:run_owner
WITH lines AS (
    SELECT
        month,
        min(began) AS began,
        max(ended) AS ended,
        namespace,
        run,
        run_uid,
        run_owner,
        owner,
        budget,
        envelope,
        flavor,
        class,
        role,
        coalesce(rate_milli, 0) / 1000 AS rate,
        sum(milli_gpu_seconds)::BIGINT AS milli_gpu_seconds,
        sum(milli_gpu_seconds_rated)::DOUBLE / 3.6e9 AS credits,
        getvariable('credit_price')::DOUBLE AS price
    FROM charges
    GROUP BY ALL
)
SELECT
    credits * price AS "BilledCost",
    owner AS "BillingAccountId",
    owner AS "BillingAccountName",
    CASE
        WHEN regexp_full_match(getvariable('currency'), '[A-Z]{3}') THEN getvariable('currency')
        ELSE error('currency is ' || getvariable('currency') || '; allowed is a code of ISO 4217 such as USD')
    END AS "BillingCurrency",
    iso(epoch(strptime(month, '%Y-%m') + INTERVAL 1 MONTH)::BIGINT) AS "BillingPeriodEnd",
    iso(epoch(strptime(month, '%Y-%m'))::BIGINT) AS "BillingPeriodStart",
    'Usage' AS "ChargeCategory",
    NULL::VARCHAR AS "ChargeClass",
    lower(role) || ' GPUs of ' || coalesce('run ' || namespace || '/' || run, 'pruned runs of ' || run_owner)
        || ', ' || class || ', from ' || budget || '/' || envelope
        AS "ChargeDescription",
    'Usage-Based' AS "ChargeFrequency",
    iso(ended) AS "ChargePeriodEnd",
    iso(began) AS "ChargePeriodStart",
    milli_gpu_seconds::DOUBLE / 3600000 AS "ConsumedQuantity",
    'GPU-Hours' AS "ConsumedUnit",
    credits * price AS "ContractedCost",
    rate * price AS "ContractedUnitPrice",
    credits * price AS "EffectiveCost",
    'Jobtree' AS "InvoiceIssuerName",
    credits * price AS "ListCost",
    rate * price AS "ListUnitPrice",
    'Standard' AS "PricingCategory",
    'Credits' AS "PricingCurrency",
    rate AS "PricingCurrencyContractedUnitPrice",
    credits AS "PricingCurrencyEffectiveCost",
    rate AS "PricingCurrencyListUnitPrice",
    milli_gpu_seconds::DOUBLE / 3600000 AS "PricingQuantity",
    'GPU-Hours' AS "PricingUnit",
    'Jobtree' AS "ProviderName",
    'Jobtree' AS "PublisherName",
    run_uid AS "ResourceId",
    namespace || '/' || run AS "ResourceName",
    'Run' AS "ResourceType",
    'Compute' AS "ServiceCategory",
    'GPU fleet' AS "ServiceName",
    run_owner AS "SubAccountId",
    run_owner AS "SubAccountName",
    budget AS "x_Budget",
    envelope AS "x_Envelope",
    flavor AS "x_Flavor",
    class AS "x_FundingClass",
    milli_gpu_seconds AS "x_MilliGpuSeconds",
    month AS "x_Month",
    role AS "x_Role"
FROM lines
ORDER BY month, owner, budget, envelope, namespace, run, flavor, class, role, rate;

-- @lead
WITH sums AS (
    SELECT sum("BilledCost") AS cost, count(DISTINCT "BillingAccountId") AS owners, any_value("BillingCurrency") AS currency,
        sum("ConsumedQuantity") FILTER ("PricingCurrencyListUnitPrice" = 0) AS unrated
    FROM report
)
SELECT CASE
    WHEN cost IS NULL THEN 'Nothing was charged in this period.'
    ELSE money(cost) || ' ' || currency || ' are billed to ' || counted_as(owners, 'owner') || ', at '
        || getvariable('credit_price') || ' ' || currency || ' a credit.'
        || CASE WHEN unrated > 0 THEN ' ' || number(unrated) || ' GPU-hours cost nothing: no rate of their flavor was set'
            || ' (Policy creditRates) when they ran.' ELSE '' END
END
FROM sums;

-- @figures
SELECT 'Billed' AS label, money(coalesce(sum("BilledCost"), 0)) || ' ' || getvariable('currency') AS value,
    change(sum("BilledCost"), (SELECT sum(b."BilledCost") FROM before AS b)) AS note
FROM report
UNION ALL
SELECT 'For', number(coalesce(sum("ConsumedQuantity"), 0)) || ' GPU-hours',
    change(sum("ConsumedQuantity"), (SELECT sum(b."ConsumedQuantity") FROM before AS b))
FROM report
UNION ALL
SELECT 'Most by', arg_max(owner, cost), money(max(cost)) || ' ' || getvariable('currency')
FROM (SELECT "BillingAccountId" AS owner, sum("BilledCost") AS cost FROM report GROUP BY owner)
HAVING max(cost) > 0;

-- @chart across: Billed cost, by the owner who pays and the month
-- A month without a cost of an owner is 0: series get their place where they come first, and months theirs in time.
SELECT o.owner AS label, coalesce(sum(r."BilledCost"), 0) AS y, m.month AS series
FROM (SELECT DISTINCT "BillingAccountId" AS owner FROM report) AS o
CROSS JOIN (SELECT DISTINCT "x_Month" AS month FROM report) AS m
LEFT JOIN report AS r ON o.owner = r."BillingAccountId" AND m.month = r."x_Month"
GROUP BY label, series
ORDER BY sum(coalesce(sum(r."BilledCost"), 0)) OVER (PARTITION BY label) DESC, label, series;

-- @table tree sum=GPU-hours, Credits, Billed
SELECT
    "BillingAccountId" AS "Owner",
    CASE WHEN count(*) OVER (PARTITION BY "BillingAccountId") > 1
        THEN strftime("BillingPeriodStart"::TIMESTAMP, '%b %Y') || ', ' || "x_Flavor" END AS "Month",
    sum("ConsumedQuantity") AS "GPU-hours",
    sum("PricingCurrencyEffectiveCost") AS "Credits",
    sum("BilledCost") AS "Billed",
    "BillingCurrency" AS "Currency"
FROM report
GROUP BY "BillingAccountId", "BillingPeriodStart", "x_Flavor", "BillingCurrency"
ORDER BY "Owner", "BillingPeriodStart", "x_Flavor"
