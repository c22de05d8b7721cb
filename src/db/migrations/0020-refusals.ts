import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0020-refusals',
  up: (t) => [
    // Sample of requests that the registry refused. `place` is the uid of the deepest existing group on the path. `outsider`
    // is true if the caller is no identity of the organization. `hour` is the time up to the hour.
    `CREATE TABLE refusals (
       id             ${t.counter},
       organisation   ${t.text} NOT NULL,
       place          ${t.text} NOT NULL,
       outsider       ${t.bool} NOT NULL,
       repository     ${t.text} NOT NULL,
       caller         ${t.text} NOT NULL,
       action         ${t.text} NOT NULL,
       code           ${t.text} NOT NULL,
       hour           ${t.text} NOT NULL,
       reference      ${t.text} NOT NULL,
       reason         ${t.text} NOT NULL,
       remote_address ${t.text} NOT NULL,
       count          ${t.int} NOT NULL,
       last_time      ${t.text} NOT NULL,
       UNIQUE (organisation, place, repository, caller, action, code, hour)
     )${t.strict}`,
    `CREATE INDEX refusals_by_organisation ON refusals (organisation, outsider, last_time, id)`,
    `CREATE INDEX refusals_by_time ON refusals (last_time, id)`,
  ],
}
