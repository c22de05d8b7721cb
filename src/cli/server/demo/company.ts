// Example company as a tree of groups. Its images are those of a public catalog (see NOTICE); the descriptions are our own.

/**
 * Group of the example company. `roles` are custom roles. A binding names an identity and a role, which are in this group or
 * above it; the role may also be built-in.
 */
export type DemoGroup = {
  name: string
  description: string
  roles?: readonly { name: string; description: string; capabilities: readonly string[] }[]
  identities?: readonly { name: string; description: string; claimMatch?: object; awsIdentity?: object }[]
  bindings?: readonly (readonly [identity: string, role: string])[]
  repos?: Readonly<Record<string, string>>
  folders?: readonly DemoGroup[]
}

const github = 'https://token.actions.githubusercontent.com'
const gitlab = 'https://gitlab.com'
const buildkite = 'https://agent.buildkite.com'
const circle = '5f0c1a6e-7c1d-4a5b-9a53-0b6f2f6f7d11'
const circleProject = 'c2b7a2f4-91d8-4f0a-8f5e-3b1f6a9d2e70'
const cluster = 'https://container.googleapis.com/v1/projects/acme-prod/locations/europe-west1/clusters/main'
const google = 'https://accounts.google.com'
const azure = 'https://login.microsoftonline.com/8d2a7c15-3f0b-4c5e-9a61-d4b7e0f1c293/v2.0'

const acme: Omit<DemoGroup, 'name'> = {
  description: 'A shop with a few teams and their images',
  roles: [
    {
      name: 'release manager',
      description: 'Updates tags and deletes images, but cannot push',
      capabilities: [
        'CAP_IAM_GROUPS_LIST',
        'CAP_REPO_LIST',
        'CAP_REPO_UPDATE',
        'CAP_MANIFEST_LIST',
        'CAP_MANIFEST_DELETE',
        'CAP_TAG_LIST',
        'CAP_TAG_CREATE',
        'CAP_TAG_UPDATE',
        'CAP_TAG_DELETE',
      ],
    },
    {
      name: 'auditor',
      description: 'Sees members and their roles, but no images',
      capabilities: [
        'CAP_IAM_GROUPS_LIST',
        'CAP_IAM_IDENTITY_LIST',
        'CAP_IAM_ROLES_LIST',
        'CAP_IAM_ROLE_BINDINGS_LIST',
        'CAP_EVENTS_SUBSCRIPTION_LIST',
      ],
    },
  ],
  identities: [
    {
      name: 'admin pipeline',
      description: 'CI pipeline that applies the access rules from the git repository acme/access',
      claimMatch: { issuer: github, subject: 'repo:acme/access:environment:production' },
    },
    {
      name: 'yearly audit',
      description: 'The service account of the auditors',
      claimMatch: { issuer: google, subject: '107904326581134029471' },
    },
    {
      name: 'mirror job',
      description: 'Copies public images into ours every night',
      awsIdentity: { awsAccount: '123456789012', arn: 'arn:aws:iam::123456789012:role/image-mirror' },
    },
  ],
  bindings: [
    ['admin pipeline', 'owner'],
    ['yearly audit', 'auditor'],
    ['mirror job', 'registry.push'],
  ],
  folders: [
    {
      name: 'platform',
      description: 'Base images and shared services of all teams',
      identities: [
        {
          name: 'base image builds',
          description: 'GitHub Actions, main branch only',
          claimMatch: { issuer: github, subject: 'repo:acme/base-images:ref:refs/heads/main' },
        },
        {
          name: 'main cluster',
          description: 'The service account that pulls for every node',
          claimMatch: { issuer: cluster, subject: 'system:serviceaccount:kube-system:image-puller', audience: cluster },
        },
      ],
      bindings: [
        ['base image builds', 'registry.push'],
        ['main cluster', 'registry.pull'],
      ],
      folders: [
        {
          name: 'bases',
          description: 'Images to build from',
          repos: {
            static: 'Certificates and time zones, for programs that need nothing else',
            'glibc-dynamic': 'The static image, with a C library',
            'alpine-base': 'Alpine base, for images that need a shell',
          },
        },
        {
          name: 'edge',
          description: 'Services that are reachable from the internet',
          repos: { nginx: 'With our headers and log format' },
        },
      ],
    },
    {
      name: 'payments',
      description: 'Payments',
      identities: [
        {
          name: 'ledger releases',
          description: 'GitLab CI, main branch of the ledger',
          claimMatch: {
            issuer: gitlab,
            subject: 'project_path:acme/payments/ledger:ref_type:branch:ref:main',
            audience: 'https://gitlab.com',
          },
        },
        {
          name: 'risk scoring',
          description: 'A managed identity in Azure that pulls the model server',
          claimMatch: { issuer: azure, subject: 'b1f7e1d0-52a4-4c0e-8f2b-6f1f0d9c3a84' },
        },
        {
          name: 'payments on call',
          description: 'The group account of the engineers on call',
          claimMatch: { issuer: google, subject: '113870925562014478236' },
        },
      ],
      bindings: [
        ['ledger releases', 'registry.push'],
        ['risk scoring', 'registry.pull'],
        ['payments on call', 'release manager'],
      ],
      repos: {
        jdk: 'Runs the ledger',
        python: 'Runs the risk model',
        php: 'Image of the old payment page, until the new one replaces it',
      },
    },
    {
      name: 'data',
      description: 'Reports and the jobs behind them',
      identities: [
        {
          name: 'warehouse pipelines',
          description: 'Buildkite, any step of the warehouse on main',
          claimMatch: {
            issuer: buildkite,
            subjectPattern: '^organization:acme:pipeline:warehouse:ref:refs/heads/main:commit:[0-9a-f]{40}:step:.*$',
            audience: 'https://buildkite.com/acme',
          },
        },
        {
          name: 'notebook builds',
          description: 'CircleCI, started by any user',
          claimMatch: {
            issuer: `https://oidc.circleci.com/org/${circle}`,
            subjectPattern: `^org/${circle}/project/${circleProject}/user/[0-9a-f-]{36}$`,
            audience: circle,
          },
        },
      ],
      bindings: [
        ['warehouse pipelines', 'editor'],
        ['warehouse pipelines', 'registry.push'],
        ['notebook builds', 'viewer'],
      ],
      repos: {
        python: 'Python with the packages of the data team',
        ruby: 'Sends the monthly reports',
        git: 'For the jobs that read from repositories',
      },
    },
    {
      name: 'web',
      description: 'The shop itself',
      identities: [
        {
          name: 'shop deploys',
          description: 'GitHub Actions, any tag of the shop',
          claimMatch: { issuer: github, subjectPattern: '^repo:acme/shop:ref:refs/tags/v[0-9.]+$' },
        },
      ],
      bindings: [['shop deploys', 'registry.push']],
      repos: { node: 'Runs the shop', go: 'Builds the search service' },
    },
    {
      name: 'mirrors',
      description: 'Copies of images of other registries',
      repos: {
        alpine: 'Every tag, copied each hour',
        nginx: 'Copied at the first pull',
        node: 'Every tag, copied each hour',
        postgres: 'A mirror that fails: the demo registry has an error here on purpose',
      },
    },
  ],
}

const shared: Omit<DemoGroup, 'name'> = {
  description: 'Images that everybody can pull',
  identities: [
    {
      name: 'catalog builds',
      description: 'GitHub Actions of the public catalog',
      claimMatch: { issuer: github, subject: 'repo:acme/public-images:ref:refs/heads/main' },
    },
  ],
  bindings: [['catalog builds', 'registry.push']],
  repos: {
    'alpine-base': 'A small base with a shell and a package manager',
    apko: 'Builds images from packages, without a Dockerfile',
    busybox: 'A shell and the usual tools in one binary',
    'gcc-glibc': 'Compiles C for glibc',
    'gcc-musl': 'Compiles C for musl',
    git: 'Clones, fetches and pushes',
    'glibc-dynamic': 'The glibc that dynamically linked programs need',
    go: 'Compiles Go',
    'hello-world': 'Prints a greeting, to test a pull',
    jdk: 'Compiles and runs Java',
    ko: 'Builds images from Go programs',
    melange: 'Builds packages from a recipe',
    'musl-dynamic': 'The musl that dynamically linked programs need',
    nginx: 'Serves files and passes on requests',
    node: 'Runs JavaScript on a server',
    php: 'Runs PHP',
    python: 'Runs Python',
    ruby: 'Runs Ruby',
    sdk: 'Tools that build the other images',
    static: 'Only certificates and time zones',
  },
}

/** Two organizations: the company, and the public organization. Everybody can pull the images of the latter. */
export function demoCompany(publicOrg: string): readonly DemoGroup[] {
  return [
    { name: publicOrg === 'acme' ? 'acme-teams' : 'acme', ...acme },
    { name: publicOrg, ...shared },
  ]
}
