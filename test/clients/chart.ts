// Check of the Helm chart, run by hand. Helm renders it, `chart/` beside this file decodes it strictly into the types of the
// Kubernetes API, and its settings are read as the server reads them. Needs helm and chart-types on the PATH:
//
//   go install helm.sh/helm/v4/cmd/helm@v4.3.1
//   (cd test/clients/chart && go build -o ~/go/bin/chart-types .)
//   bin/pinfold-node test/clients/chart.ts
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { readConfig, settings } from '#config.ts'
import { cleanEnv, project } from '../support/process.ts'

let passed = 0
let failed = 0

type Values = Record<string, any>

const chart = join(project, 'examples/chart')
const least = { image: { repository: 'registry.example.com/tools/pinfold' }, url: 'https://registry.example.com' }
const withPostgres = { ...least, database: { existingSecret: 'db' }, masterKey: { existingSecret: 'master' } }
/** Values for the secrets of a cluster. */
const secretValues: Record<string, string> = {
  PINFOLD_DATABASE: 'postgres://pinfold@db/pinfold',
  PINFOLD_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  PINFOLD_METRICS_TOKEN: 'a-token-of-the-metrics',
}

function helm(values: Values) {
  // The helm of `go install` takes itself for an old one.
  const args = ['template', 'pinfold', chart, '--kube-version', '1.34.0', '--values', '-']
  return run('helm', args, JSON.stringify(values))
}

function run(program: string, args: string[], input: string) {
  const done = spawnSync(program, args, { input, env: cleanEnv(), encoding: 'utf8' })
  if (done.error) throw done.error
  return done
}

function render(values: Values): Values[] {
  const rendered = helm(values)
  assert.equal(rendered.status, 0, rendered.stderr)
  const decoded = run('chart-types', [], rendered.stdout)
  assert.equal(decoded.status, 0, decoded.stderr)
  return JSON.parse(decoded.stdout)
}

const kindsOf = (objects: Values[]) => objects.map(({ kind }) => kind).sort()
const one = (objects: Values[], kind: string) => objects.find((object) => object.kind === kind)!
const templateOf = (objects: Values[], kinds = ['Deployment', 'StatefulSet']): Values =>
  objects.find(({ kind }) => kinds.includes(kind))!.spec.template
const podOf = (objects: Values[]) => templateOf(objects).spec

/** Settings of the pod, read as the server reads them. */
function configOf(objects: Values[], pod = podOf(objects)) {
  const env = pod.containers[0].env as { name: string; value?: string; valueFrom?: object }[]
  assert.equal(new Set(env.map(({ name }) => name)).size, env.length, 'a variable is there twice')
  return readConfig(
    Object.fromEntries(env.map(({ name, value, valueFrom }) => [name, valueFrom ? secretValues[name] : value])),
  )
}

function check(name: string, body: () => void): void {
  try {
    body()
    passed++
    console.log(`ok   ${name}`)
  } catch (error) {
    failed++
    console.log(`FAIL ${name}\n${(error as Error).message}`)
  }
}

function checkRefusal(name: string, values: Values, reason: RegExp): void {
  check(name, () => {
    const { status, stderr } = helm(values)
    assert.notEqual(status, 0, 'it was rendered')
    assert.match(stderr, reason)
  })
}

check('the least: one server with the embedded database in a volume', () => {
  const objects = render(least)
  assert.deepEqual(kindsOf(objects), ['Service', 'StatefulSet'])
  const { spec } = one(objects, 'StatefulSet')
  assert.equal(spec.replicas, 1)
  const [claim] = spec.volumeClaimTemplates
  const [container] = podOf(objects).containers
  assert.deepEqual(container.volumeMounts, [{ name: claim.metadata.name, mountPath: '/var/lib/pinfold' }])
  const config = configOf(objects)
  assert.deepEqual([config.data, config.listen.port, config.url], ['/var/lib/pinfold', 8080, least.url])
  assert.equal(config.database, '')
  assert.deepEqual(spec.selector.matchLabels, one(objects, 'Service').spec.selector)
})

check('a pod has no rights, no token of the cluster and no variables of other services', () => {
  const pod = podOf(render(least))
  assert.deepEqual([pod.enableServiceLinks, pod.automountServiceAccountToken], [false, false])
  const { runAsNonRoot, runAsUser, fsGroup, seccompProfile } = pod.securityContext
  assert.deepEqual([runAsNonRoot, runAsUser, fsGroup, seccompProfile.type], [true, 65_532, 65_532, 'RuntimeDefault'])
  const context = pod.containers[0].securityContext
  const wanted = { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
  assert.deepEqual(context, wanted)
})

check('a pod has the time that the server takes to end', () => {
  for (const drain of [10_000, '2500', 600_000]) {
    const settings = { PINFOLD_DRAIN_MS: drain, PINFOLD_LAMEDUCK_MS: 4000 }
    const objects = render({ ...least, settings, preStopSeconds: 7 })
    const pod = podOf(objects)
    assert.equal(pod.containers[0].lifecycle.preStop.sleep.seconds, 7)
    assert.ok(pod.terminationGracePeriodSeconds >= 7 + (configOf(objects).drainMs + 4000) / 1000 + 5)
  }
})

check('TLS of our own, with probes and a service that speak it', () => {
  const objects = render({ ...least, tls: { existingSecret: 'tls' }, service: { type: 'LoadBalancer' } })
  const [container] = podOf(objects).containers
  for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
    assert.equal(container[probe].httpGet.scheme, 'HTTPS')
  const config = configOf(objects)
  assert.deepEqual([config.tlsCert, config.tlsKey], ['/run/tls/tls.crt', '/run/tls/tls.key'])
  assert.ok(container.volumeMounts.some(({ mountPath }: Values) => mountPath === '/run/tls'))
  const secret = podOf(objects).volumes.find(({ name }: Values) => name === 'tls').secret
  assert.deepEqual(secret, { secretName: 'tls', defaultMode: 0o440 })
  const [port] = one(objects, 'Service').spec.ports
  assert.deepEqual([port.port, container.ports[0].containerPort], [443, config.listen.port])
})

check('several servers with PostgreSQL and a volume that they share', () => {
  const objects = render({
    ...withPostgres,
    replicas: 3,
    storage: { accessModes: ['ReadWriteMany'], storageClass: 'nfs', size: '1Ti' },
    ingress: { enabled: true, className: 'nginx', tlsSecret: 'cert', annotations: { a: 'b' } },
    settings: { PINFOLD_TRUSTED_PROXIES: '10.0.0.0/8' },
  })
  const kinds = ['Deployment', 'Ingress', 'Job', 'PersistentVolumeClaim', 'PodDisruptionBudget', 'Service']
  assert.deepEqual(kindsOf(objects), kinds)
  const { spec } = one(objects, 'Deployment')
  assert.equal(spec.replicas, 3)
  const claim = one(objects, 'PersistentVolumeClaim')
  assert.equal(claim.metadata.annotations['helm.sh/resource-policy'], 'keep')
  assert.equal(podOf(objects).volumes[0].persistentVolumeClaim.claimName, claim.metadata.name)
  assert.equal(configOf(objects).database, secretValues.PINFOLD_DATABASE)
  const [rule] = one(objects, 'Ingress').spec.rules
  assert.equal(rule.host, 'registry.example.com')
  const { service } = rule.http.paths[0].backend
  const served = one(objects, 'Service')
  assert.deepEqual([service.name, service.port.number], [served.metadata.name, served.spec.ports[0].port])
})

const bucket = { blobs: 's3://bucket/prefix?region=eu-central-1' }

check('servers that share everything are replaced one by one, after a job has migrated the database', () => {
  const extraVolumes = [{ name: 'provider', secret: { secretName: 'provider' } }]
  const extraVolumeMounts = [{ name: 'provider', mountPath: '/run/provider', readOnly: true }]
  const objects = render({
    ...withPostgres,
    ...bucket,
    extraVolumes,
    extraVolumeMounts,
    affinity: { podAntiAffinity: {} },
  })
  const { spec } = one(objects, 'Deployment')
  const rolling = { maxUnavailable: 0, maxSurge: 1 }
  assert.deepEqual(spec.strategy, { type: 'RollingUpdate', rollingUpdate: rolling })
  const job = one(objects, 'Job')
  assert.equal(job.metadata.annotations['helm.sh/hook'], 'pre-upgrade')
  const { metadata, spec: pod } = templateOf(objects, ['Job'])
  const [[migrating], [serving]] = [pod.containers, podOf(objects).containers]
  assert.deepEqual([migrating.args, pod.restartPolicy, pod.affinity], [['migrate'], 'Never', undefined])
  for (const part of ['image', 'env', 'securityContext', 'volumeMounts'])
    assert.deepEqual(migrating[part], serving[part], part)
  for (const part of ['securityContext', 'volumes', 'enableServiceLinks', 'automountServiceAccountToken'])
    assert.deepEqual(pod[part], podOf(objects)[part], part)
  assert.equal(configOf(objects, pod).migrateAtStart, false)
  const selected = Object.entries<string>(one(objects, 'Service').spec.selector)
  assert.deepEqual(selected, Object.entries(spec.selector.matchLabels))
  assert.ok(
    selected.some(([key, value]) => metadata.labels[key] !== value),
    'the job would be served from',
  )
})

check('where servers cannot be beside each other all of them end first, and migrate as they start', () => {
  const ofMany = { ...withPostgres, replicas: 3, storage: { accessModes: ['ReadWriteMany'] } }
  for (const values of [
    withPostgres,
    { ...ofMany, strategy: 'recreate' },
    { ...withPostgres, ...bucket, strategy: 'recreate' },
  ]) {
    const objects = render(values)
    assert.deepEqual(one(objects, 'Deployment').spec.strategy, { type: 'Recreate' })
    assert.ok(!kindsOf(objects).includes('Job'))
    assert.equal(configOf(objects).migrateAtStart, true)
  }
  const [embedded] = [render({ ...least, strategy: 'recreate' })]
  assert.deepEqual(kindsOf(embedded), ['Service', 'StatefulSet'])
})

check('with PostgreSQL and a bucket there is no volume that one pod could keep from another', () => {
  const objects = render({ ...withPostgres, ...bucket, replicas: 2 })
  assert.ok(!kindsOf(objects).includes('PersistentVolumeClaim'))
  assert.deepEqual(podOf(objects).volumes, [{ name: 'data', emptyDir: {} }])
  const own = render({ ...withPostgres, ...bucket, storage: { existingClaim: 'mine' } })
  assert.equal(podOf(own).volumes[0].persistentVolumeClaim.claimName, 'mine')
})

check('as many servers as there is work for', () => {
  const objects = render({ ...withPostgres, ...bucket, autoscaling: { enabled: true, maxReplicas: 9 } })
  const { spec } = one(objects, 'HorizontalPodAutoscaler')
  const { kind, name } = spec.scaleTargetRef
  assert.equal(one(objects, kind).metadata.name, name)
  assert.deepEqual([spec.minReplicas, spec.maxReplicas, one(objects, kind).spec.replicas], [2, 9, undefined])
  const [{ resource }] = spec.metrics
  assert.deepEqual(resource, { name: 'cpu', target: { type: 'AverageValue', averageValue: '700m' } })
  assert.ok(kindsOf(objects).includes('PodDisruptionBudget'))
  assert.ok(podOf(objects).topologySpreadConstraints)
})

check('metrics have a service of their own, and a monitor of it', () => {
  const metrics = { enabled: true, serviceMonitor: { enabled: true, labels: { release: 'prometheus' } } }
  const objects = render({ ...least, metrics })
  assert.deepEqual(kindsOf(objects), ['Service', 'Service', 'ServiceMonitor', 'StatefulSet'])
  const monitor = one(objects, 'ServiceMonitor')
  assert.equal(monitor.metadata.labels.release, 'prometheus')
  const wanted = Object.entries(monitor.spec.selector.matchLabels)
  const found = objects.filter(
    ({ kind, metadata }) => kind === 'Service' && wanted.every(([key, value]) => metadata.labels[key] === value),
  )
  assert.deepEqual(
    found.map(({ metadata }) => metadata.name),
    ['pinfold-metrics'],
  )
  assert.equal(found[0]!.spec.ports[0].name, monitor.spec.endpoints[0].port)
  assert.equal(configOf(objects).metricsListen?.port, found[0]!.spec.ports[0].port)
})

check('what else can be set, and a claim that is there already', () => {
  const objects = render({
    ...least,
    image: { ...least.image, digest: `sha256:${'0'.repeat(64)}` },
    imagePullSecrets: [{ name: 'pull' }],
    storage: { existingClaim: 'mine' },
    secretSettings: { PINFOLD_METRICS_TOKEN: { name: 'metrics', key: 'token' } },
    service: { port: 8443, annotations: { a: 'b' } },
    serviceAccountName: 'pinfold',
    podAnnotations: { a: 'b' },
    podLabels: { a: 'b' },
    nodeSelector: { a: 'b' },
    tolerations: [{ key: 'a', operator: 'Exists' }],
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
    extraVolumes: [{ name: 'provider', secret: { secretName: 'provider' } }],
    extraVolumeMounts: [{ name: 'provider', mountPath: '/run/provider', readOnly: true }],
  })
  const pod = podOf(objects)
  assert.match(pod.containers[0].image, /^registry\.example\.com\/tools\/pinfold@sha256:0+$/)
  assert.deepEqual(
    pod.volumes.map(({ name }: Values) => name),
    ['data', 'provider'],
  )
  assert.equal(pod.volumes[0].persistentVolumeClaim.claimName, 'mine')
  assert.equal(configOf(objects).metricsToken, secretValues.PINFOLD_METRICS_TOKEN)
  assert.equal(one(objects, 'StatefulSet').spec.volumeClaimTemplates, undefined)
})

check('values of settings arrive as they are meant', () => {
  const settings = {
    PINFOLD_ALLOW_ORGANIZATION_CREATION: true,
    PINFOLD_METRICS: false,
    PINFOLD_DELIVERY_GIVE_UP_MS: 259_200_000,
  }
  const config = configOf(render({ ...least, settings: { ...settings, PINFOLD_QUOTA_BYTES: 1_000_000_000_000 } }))
  assert.deepEqual([config.allowOrganizationCreation, config.metrics], [true, false])
  assert.deepEqual([config.deliveryGiveUpMs, config.quotaBytes], [259_200_000, 1_000_000_000_000])
})

check('every setting that the chart has no value of its own for can be set', () => {
  const own = configOwn()
  const rest = Object.values(settings).filter(({ env }) => !own.includes(env))
  const plain = rest.filter(({ env }) => !['PINFOLD_METRICS_TOKEN', 'PINFOLD_MASTER_KEY_NEW'].includes(env))
  const env = podOf(render({ ...least, settings: Object.fromEntries(plain.map((one) => [one.env, one.default])) }))
    .containers[0].env
  for (const one of plain)
    assert.equal(env.find(({ name }: Values) => name === one.env).value ?? '', one.default, one.env)
})

/** Settings of the chart if all of its own values are set. */
function configOwn(): string[] {
  const objects = render({ ...withPostgres, tls: { existingSecret: 'tls' }, metrics: { enabled: true } })
  return podOf(objects)
    .containers[0].env.map(({ name }: Values) => name)
    .filter((name: string) => name !== 'PINFOLD_DRAIN_MS')
}

checkRefusal('no image', { url: least.url }, /set image\.repository/)
checkRefusal('no URL', { image: least.image }, /set url to the public URL/)
checkRefusal('a URL with a path', { ...least, url: 'https://a.example.com/b' }, /set url to the public URL/)
checkRefusal('PostgreSQL without a key', { ...least, database: { existingSecret: 'db' } }, /needs masterKey/)
checkRefusal('several servers without PostgreSQL', { ...least, replicas: 2 }, /needs PostgreSQL/)
checkRefusal('several servers and a volume for one', { ...withPostgres, replicas: 2 }, /ReadWriteMany/)
checkRefusal(
  'a rolling update of an embedded database',
  { ...least, strategy: 'rolling' },
  /rolling update needs PostgreSQL/,
)
checkRefusal('a rolling update and a volume for one', { ...withPostgres, strategy: 'rolling' }, /ReadWriteMany/)
checkRefusal('as many as there is work for, of one', { ...least, autoscaling: { enabled: true } }, /needs PostgreSQL/)
checkRefusal(
  'more servers at least than at most',
  { ...withPostgres, ...bucket, autoscaling: { enabled: true, minReplicas: 6 } },
  /maxReplicas is less/,
)
checkRefusal('another strategy', { ...least, strategy: 'Recreate' }, /strategy/)
checkRefusal(
  'a migration that the strategy decides on',
  { ...least, settings: { PINFOLD_MIGRATE_AT_START: 'on' } },
  /PINFOLD_MIGRATE_AT_START/,
)
checkRefusal('a misspelt setting', { ...least, settings: { PINFOLD_LOG_LEVLE: 'warn' } }, /PINFOLD_LOG_LEVLE/)
checkRefusal('a setting of the chart', { ...least, settings: { PINFOLD_LISTEN: '[::]:80' } }, /PINFOLD_LISTEN/)
checkRefusal('a secret in plain sight', { ...least, settings: { PINFOLD_METRICS_TOKEN: 'x' } }, /PINFOLD_METRICS_TOKEN/)
checkRefusal('a misspelt value', { ...least, ingres: { enabled: true } }, /ingres/)
checkRefusal(
  'a setting twice',
  {
    ...least,
    settings: { PINFOLD_HOSTS: 'a.example.com' },
    secretSettings: { PINFOLD_HOSTS: { name: 'a', key: 'b' } },
  },
  /PINFOLD_HOSTS is in settings and in secretSettings/,
)
checkRefusal(
  'a monitor of nothing',
  { ...least, metrics: { serviceMonitor: { enabled: true } } },
  /needs metrics\.enabled/,
)
checkRefusal('a drain that is no number', { ...least, settings: { PINFOLD_DRAIN_MS: '10s' } }, /PINFOLD_DRAIN_MS/)

console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
