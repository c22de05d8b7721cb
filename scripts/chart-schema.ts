// Schema of the Helm chart's values. Helm checks the values before an installation. So Helm refuses a misspelled setting, which
// would otherwise keep the server from starting.
import { formerOnes, settings } from '#config.ts'

type Schema = Record<string, unknown>

/** Settings that the chart sets from values with other names. */
const ofChart = [
  ...['PINFOLD_LISTEN', 'PINFOLD_URL', 'PINFOLD_DATA', 'PINFOLD_BLOBS', 'PINFOLD_DATABASE', 'PINFOLD_MASTER_KEY'],
  ...['PINFOLD_TLS_CERT', 'PINFOLD_TLS_KEY', 'PINFOLD_METRICS_LISTEN', 'PINFOLD_MIGRATE_AT_START'],
]
/** Settings that must be in a Kubernetes secret. */
const secrets = ['PINFOLD_MASTER_KEY_NEW', 'PINFOLD_METRICS_TOKEN']

const text: Schema = { type: 'string' }
const flag: Schema = { type: 'boolean' }
const whole = (minimum: number, maximum: number): Schema => ({ type: 'integer', minimum, maximum })
const list: Schema = { type: 'array' }
const map: Schema = { type: 'object' }
const only = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties,
  additionalProperties: false,
})
const secretKey: Schema = {
  ...only({ name: { type: 'string', minLength: 1 }, key: { type: 'string', minLength: 1 } }),
  required: ['name', 'key'],
}
const fromSecret = only({ existingSecret: text, key: text })

/** Seconds that the chart adds to the server's own time to stop, for the pod's grace period. */
const added = ['PINFOLD_LAMEDUCK_MS', 'PINFOLD_DRAIN_MS']

/** Text of the chart's `values.schema.json`, made from the table of settings. */
export function chartSchema(): string {
  const current = Object.values(settings).map(({ env }) => env)
  const names = [...current, ...formerOnes()].filter((name) => !ofChart.includes(name))
  const value = { type: ['string', 'boolean', 'integer'] }
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...only({
      global: map,
      image: only({
        repository: text,
        tag: text,
        digest: text,
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: list,
      url: text,
      database: fromSecret,
      masterKey: fromSecret,
      replicas: whole(0, 100),
      autoscaling: only({
        enabled: flag,
        minReplicas: whole(1, 100),
        maxReplicas: whole(1, 100),
        cpu: { type: ['string', 'integer'] },
      }),
      strategy: { enum: ['', 'rolling', 'recreate'] },
      blobs: text,
      blobCredentials: only({ existingSecret: text }),
      storage: only({
        existingClaim: text,
        size: text,
        storageClass: text,
        accessModes: { ...list, minItems: 1, items: text },
      }),
      tls: only({ existingSecret: text }),
      settings: only({
        ...Object.fromEntries(names.filter((name) => !secrets.includes(name)).map((name) => [name, value])),
        ...Object.fromEntries(added.map((name) => [name, { type: ['string', 'integer'], pattern: '^[0-9]+$' }])),
      }),
      secretSettings: only(
        Object.fromEntries(names.filter((name) => !added.includes(name)).map((name) => [name, secretKey])),
      ),
      listenAddress: text,
      service: only({
        type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
        port: { type: ['integer', 'null'] },
        annotations: map,
      }),
      ingress: only({ enabled: flag, className: text, annotations: map, tlsSecret: text }),
      metrics: only({
        enabled: flag,
        port: whole(1, 65_535),
        serviceMonitor: only({ enabled: flag, interval: text, labels: map }),
      }),
      podDisruptionBudget: only({ enabled: flag }),
      preStopSeconds: whole(1, 300),
      startupSeconds: whole(10, 86_400),
      resources: map,
      serviceAccountName: text,
      podAnnotations: map,
      podLabels: map,
      nodeSelector: map,
      tolerations: list,
      affinity: map,
      extraVolumes: list,
      extraVolumeMounts: list,
    }),
  }
  return `${JSON.stringify(schema, null, 1)}\n`
}
