// Claims in the tokens of CI platforms and clouds, from their documentation. A fake issuer adds times and signatures.
// `docs/identities` has the same claims, and a test compares both.
export type Claims = Record<string, unknown>

export type PlatformIdentity = {
  /** Name of the identity in the guide. */
  name: string
  /** Tokens that the identity accepts, as changes of the guide's claims. `undefined` removes a claim. */
  accepts: Claims[]
  /** Tokens that the identity refuses, as changes of the claims, by the reason. */
  refuses: Record<string, Claims>
}

export type Platform = {
  /** File in docs/identities, without `.md`. */
  guide: string
  title: string
  claims: Claims
  identities: PlatformIdentity[]
}

/** URL of the server in the guides. */
export const exampleUrl = 'https://registry.example.com'

const sha = '9f3182061f1e2cca4702c368cbc039b7dc9d4485'
const immutable = 'repo:acme@123456/ledger@456789'
const publish = 'acme/workflows/.github/workflows/publish.yml@refs/heads/main'
const mainOfLedger = { sub: 'repo:acme/ledger:ref:refs/heads/main' }
const otherRepository = { repository: 'acme/web', repository_id: '777777', sub: 'repo:acme@123456/web@777777' }
/** The former names of an organization and a repository now belong to another owner. */
const recycled = { ...mainOfLedger, repository_id: '888888', repository_owner_id: '999999' }

const github: Platform = {
  guide: 'github',
  title: 'GitHub Actions',
  claims: {
    iss: 'https://token.actions.githubusercontent.com',
    sub: `${immutable}:ref:refs/heads/main`,
    aud: exampleUrl,
    repository: 'acme/ledger',
    repository_id: '456789',
    repository_owner: 'acme',
    repository_owner_id: '123456',
    repository_visibility: 'private',
    ref: 'refs/heads/main',
    ref_type: 'branch',
    event_name: 'push',
    workflow: 'release',
    workflow_ref: 'acme/ledger/.github/workflows/release.yml@refs/heads/main',
    workflow_sha: sha,
    job_workflow_ref: 'acme/ledger/.github/workflows/release.yml@refs/heads/main',
    job_workflow_sha: sha,
    runner_environment: 'github-hosted',
    actor: 'jane',
    actor_id: '1001',
    base_ref: '',
    head_ref: '',
    run_id: '5550001',
    run_number: '12',
    run_attempt: '1',
    sha,
    jti: '0f7c1d1e-52d6-4f0e-9f0a-0d8f4a1f4b11',
  },
  identities: [
    {
      name: 'ledger main',
      accepts: [{}],
      refuses: {
        'another branch': { sub: `${immutable}:ref:refs/heads/dev`, ref: 'refs/heads/dev' },
        'a branch that starts alike': { sub: `${immutable}:ref:refs/heads/main-2`, ref: 'refs/heads/main-2' },
        'another repository': { ...otherRepository, sub: `${otherRepository.sub}:ref:refs/heads/main` },
        'a pull request': { sub: `${immutable}:pull_request`, event_name: 'pull_request', ref: 'refs/pull/7/merge' },
        'the older format': mainOfLedger,
        'the same names, taken over': { sub: 'repo:acme@999999/ledger@888888:ref:refs/heads/main' },
      },
    },
    {
      name: 'ledger main of an older repository',
      accepts: [mainOfLedger],
      refuses: { 'the newer format': {}, 'the same names, taken over': recycled },
    },
    {
      name: 'ledger main in either format',
      accepts: [{}, mainOfLedger, { sub: 'repo:acme@123456/renamed@456789:ref:refs/heads/main' }],
      refuses: {
        'another branch': { sub: `${immutable}:ref:refs/heads/dev` },
        'an environment': { sub: `${immutable}:environment:ref%3Arefs/heads/main`, environment: 'ref:refs/heads/main' },
        'another repository': { ...otherRepository, sub: `${otherRepository.sub}:ref:refs/heads/main` },
        'the same names, taken over': recycled,
      },
    },
    {
      name: 'ledger production',
      accepts: [{ sub: `${immutable}:environment:production`, environment: 'production' }],
      refuses: {
        'no environment': {},
        'another environment': { sub: `${immutable}:environment:staging`, environment: 'staging' },
      },
    },
    {
      name: 'ledger pull requests',
      accepts: [{ sub: `${immutable}:pull_request`, event_name: 'pull_request', base_ref: 'main', head_ref: 'fix' }],
      refuses: {
        'a push': {},
        'another repository': { ...otherRepository, sub: `${otherRepository.sub}:pull_request` },
      },
    },
    {
      name: 'the publish workflow of acme',
      accepts: [
        { job_workflow_ref: publish },
        { ...otherRepository, sub: `${otherRepository.sub}:ref:refs/heads/main`, job_workflow_ref: publish },
      ],
      refuses: {
        'a workflow of its own': {},
        'the workflow at another branch': { job_workflow_ref: publish.replace('main', 'dev') },
        'another owner': { repository_owner: 'mallory', repository_owner_id: '666', job_workflow_ref: publish },
      },
    },
    {
      name: 'ledger production by the publish workflow',
      accepts: [{ sub: `${immutable}:environment:production:job_workflow_ref:${publish}`, environment: 'production' }],
      refuses: { 'the default subject': { sub: `${immutable}:environment:production`, environment: 'production' } },
    },
  ],
}

const gitlab: Platform = {
  guide: 'gitlab',
  title: 'GitLab',
  claims: {
    iss: 'https://gitlab.com',
    sub: 'project_path:acme/ledger:ref_type:branch:ref:main',
    aud: exampleUrl,
    namespace_id: '68413579',
    namespace_path: 'acme',
    project_id: '46573356',
    project_path: 'acme/ledger',
    project_visibility: 'private',
    user_id: '184239',
    user_login: 'jane',
    user_email: 'jane@example.com',
    user_access_level: 'developer',
    pipeline_id: '1519139981',
    pipeline_source: 'push',
    job_id: '8222997048',
    ref: 'main',
    ref_type: 'branch',
    ref_path: 'refs/heads/main',
    ref_protected: 'true',
    runner_id: 12270835,
    runner_environment: 'gitlab-hosted',
    sha,
    ci_config_ref_uri: 'gitlab.com/acme/ledger//.gitlab-ci.yml@refs/heads/main',
    ci_config_sha: sha,
    jti: '63ab75f4-2606-4f0e-a500-86f90ab13a85',
  },
  identities: [
    {
      name: 'ledger main',
      accepts: [{}],
      refuses: {
        'another branch': {
          sub: 'project_path:acme/ledger:ref_type:branch:ref:dev',
          ref: 'dev',
          ref_protected: 'false',
        },
        'a tag of that name': { sub: 'project_path:acme/ledger:ref_type:tag:ref:main', ref_type: 'tag' },
        'another project': { sub: 'project_path:acme/web:ref_type:branch:ref:main', project_id: '1' },
        'the same path, taken over': { project_id: '99999999', namespace_id: '88888888' },
        'a branch that is no longer protected': { ref_protected: 'false' },
      },
    },
    {
      name: 'ledger releases',
      accepts: [
        { sub: 'project_path:acme/ledger:ref_type:tag:ref:v1.2.3', ref: 'v1.2.3', ref_type: 'tag' },
        { sub: 'project_path:acme/renamed:ref_type:tag:ref:v10.0.0', ref: 'v10.0.0', ref_type: 'tag' },
      ],
      refuses: {
        'a branch': {},
        'a tag that is not a version': { sub: 'project_path:acme/ledger:ref_type:tag:ref:v1.2.3-rc', ref_type: 'tag' },
        'a version that is not protected': {
          sub: 'project_path:acme/ledger:ref_type:tag:ref:v1.2.3',
          ref_type: 'tag',
          ref_protected: 'false',
        },
      },
    },
  ],
}

const kubernetes: Platform = {
  guide: 'kubernetes',
  title: 'Kubernetes',
  claims: {
    iss: 'https://oidc.cluster.example.com',
    sub: 'system:serviceaccount:payments:ledger',
    aud: [exampleUrl],
    'kubernetes.io': {
      namespace: 'payments',
      node: { name: 'worker-1', uid: '517eb86e-b863-451b-bf70-86cb61439a3a' },
      pod: { name: 'ledger-5c7d8', uid: '0d8b260e-ef0e-45fb-be8e-ff44f97722e8' },
      serviceaccount: { name: 'ledger', uid: 'e6a8680e-d103-4cce-80ea-03acbbeacf7d' },
    },
    jti: 'e51f1fbc-4733-4b85-a59f-ba80c0523874',
  },
  identities: [
    {
      name: 'ledger pods',
      accepts: [{}, { aud: ['https://kubernetes.default.svc', exampleUrl] }],
      refuses: {
        'another namespace': { sub: 'system:serviceaccount:default:ledger' },
        'another account of the namespace': { sub: 'system:serviceaccount:payments:default' },
      },
    },
    {
      name: 'ledger pods of a closed cluster',
      accepts: [{}],
      refuses: { 'another namespace': { sub: 'system:serviceaccount:default:ledger' } },
    },
  ],
}

const google: Platform = {
  guide: 'google',
  title: 'Google Cloud',
  claims: {
    iss: 'https://accounts.google.com',
    sub: '113774264463038321964',
    azp: '113774264463038321964',
    aud: exampleUrl,
    email: 'ledger@acme-payments.iam.gserviceaccount.com',
    email_verified: true,
    google: {
      compute_engine: {
        project_id: 'acme-payments',
        project_number: 739419398126,
        zone: 'europe-west1-b',
        instance_id: '152986662232938449',
        instance_name: 'ledger-1',
        instance_creation_timestamp: 1551130000,
      },
    },
  },
  identities: [
    {
      name: 'ledger service account',
      accepts: [{}, { email: undefined, email_verified: undefined, google: undefined }],
      refuses: {
        'another account': { sub: '100000000000000000001', azp: '100000000000000000001' },
        'the same address, created anew': { sub: '118888888888888888888' },
      },
    },
  ],
}

const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47'
const principal = '8d1a4b3e-2f5c-4c6b-9a51-1f0e2d3c4b5a'
const azureV2 = {
  iss: `https://login.microsoftonline.com/${tenant}/v2.0`,
  aud: '2f4f6a1c-0b7e-4a43-9d53-6d2b8c1e9f00',
  ver: '2.0',
  azp: 'c5b1f1a8-6a0d-4d6c-8f7e-3b2a1c0d9e8f',
  azpacr: '2',
  appid: undefined,
  appidacr: undefined,
  idp: undefined,
}

const azure: Platform = {
  guide: 'azure',
  title: 'Azure',
  claims: {
    iss: `https://sts.windows.net/${tenant}/`,
    sub: principal,
    oid: principal,
    tid: tenant,
    aud: 'api://pinfold',
    appid: 'c5b1f1a8-6a0d-4d6c-8f7e-3b2a1c0d9e8f',
    appidacr: '2',
    idp: `https://sts.windows.net/${tenant}/`,
    ver: '1.0',
    uti: 'bXlVbmlxdWVUb2tlbklk',
  },
  identities: [
    {
      name: 'ledger managed identity',
      accepts: [{}],
      refuses: {
        'another principal': {
          sub: 'ffffffff-2f5c-4c6b-9a51-1f0e2d3c4b5a',
          oid: 'ffffffff-2f5c-4c6b-9a51-1f0e2d3c4b5a',
        },
        'version 2': azureV2,
      },
    },
    {
      name: 'ledger managed identity in version 2',
      accepts: [azureV2],
      refuses: { 'another principal': { ...azureV2, sub: tenant, oid: tenant }, 'version 1': {} },
    },
  ],
}

const pipeline = 'organization:acme:pipeline:ledger'

const buildkite: Platform = {
  guide: 'buildkite',
  title: 'Buildkite',
  claims: {
    iss: 'https://agent.buildkite.com',
    sub: `${pipeline}:ref:refs/heads/main:commit:${sha}:step:release`,
    aud: exampleUrl,
    organization_slug: 'acme',
    pipeline_slug: 'ledger',
    build_number: 42,
    build_branch: 'main',
    build_commit: sha,
    step_key: 'release',
    job_id: '0184990a-477b-4fa8-9968-496074483cee',
    agent_id: '0184990a-4782-42b5-afc1-16715b10b8ff',
    build_source: 'webhook',
    runner_environment: 'self-hosted',
    organization_id: '0184990a-477b-4fa8-9968-4960744835aa',
    pipeline_id: '0184990a-4782-42b5-afc1-16715b10b1c0',
    jti: '0194b014-8517-7cef-b232-76a827315f08',
  },
  identities: [
    {
      name: 'ledger main',
      accepts: [
        {},
        {
          sub: `${pipeline}:ref:refs/heads/main:commit:0000000000000000000000000000000000000000:step:`,
          step_key: null,
        },
      ],
      refuses: {
        'another branch': { sub: `${pipeline}:ref:refs/heads/dev:commit:${sha}:step:release`, build_branch: 'dev' },
        'a tag of that name': { sub: `${pipeline}:ref:refs/tags/main:commit:${sha}:step:release`, build_tag: 'main' },
        'another pipeline': {
          sub: `organization:acme:pipeline:web:ref:refs/heads/main:commit:${sha}:step:release`,
          pipeline_slug: 'web',
          pipeline_id: '0184990a-4782-42b5-afc1-00000000000a',
        },
        'the same names, taken over': { organization_id: '0184990a-477b-4fa8-9968-00000000000b' },
        'a token without the ids': { organization_id: undefined, pipeline_id: undefined },
      },
    },
  ],
}

const circleOrg = 'c9035eb6-6eb2-4c85-8a81-d9ed6a1d1d1e'
const circleProject = '3a2f5b1c-7d4e-4f6a-9b8c-0d1e2f3a4b5c'
const circleUser = '5e6f7a8b-9c0d-4e1f-a2b3-c4d5e6f7a8b9'
const circleSubject = `org/${circleOrg}/project/${circleProject}/user/${circleUser}`

const circleci: Platform = {
  guide: 'circleci',
  title: 'CircleCI',
  claims: {
    iss: `https://oidc.circleci.com/org/${circleOrg}`,
    sub: circleSubject,
    aud: exampleUrl,
    'oidc.circleci.com/project-id': circleProject,
    'oidc.circleci.com/vcs-origin': 'github.com/acme/ledger',
    'oidc.circleci.com/vcs-ref': 'refs/heads/main',
    'oidc.circleci.com/context-ids': ['7b6a5c4d-3e2f-4a1b-8c9d-0e1f2a3b4c5d'],
    'oidc.circleci.com/ssh-rerun': false,
  },
  identities: [
    {
      name: 'ledger main',
      accepts: [{}, { sub: `${circleSubject}/vcs-origin/github.com/acme/ledger/vcs-ref/refs/heads/main` }],
      refuses: {
        'another branch': { 'oidc.circleci.com/vcs-ref': 'refs/heads/dev' },
        'a fork': { 'oidc.circleci.com/vcs-origin': 'github.com/mallory/ledger' },
        'somebody in a shell': { 'oidc.circleci.com/ssh-rerun': true },
        'another project': {
          sub: circleSubject.replace(circleProject, circleUser),
          'oidc.circleci.com/project-id': circleUser,
        },
      },
    },
    {
      name: 'ledger main by the default token',
      accepts: [{ aud: circleOrg }],
      refuses: { 'another branch': { aud: circleOrg, 'oidc.circleci.com/vcs-ref': 'refs/heads/dev' } },
    },
  ],
}

const repositoryUuid = '{2e9e429c-7b8b-404f-8648-8c40c27c9ebd}'
const otherUuid = '{11111111-7b8b-404f-8648-8c40c27c9ebd}'
const stepUuid = '{70b4ffe5-6b1f-4b57-a8a0-3d3a4f0a5ef2}'
const environmentUuid = '{1e2f3d4c-5b6a-4978-8695-a4b3c2d1e0f9}'
const workspaceAudience = 'ari:cloud:bitbucket::workspace/7baee083-4f25-4a97-8a9a-0fde1b623b45'

const bitbucket: Platform = {
  guide: 'bitbucket',
  title: 'Bitbucket Pipelines',
  claims: {
    iss: 'https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc',
    sub: `${repositoryUuid}:${stepUuid}`,
    aud: [workspaceAudience, exampleUrl],
    workspaceUuid: '{7baee083-4f25-4a97-8a9a-0fde1b623b45}',
    repositoryUuid,
    pipelineUuid: '{94da6298-1c5e-4a8e-9a39-3c8f0c7d2b11}',
    stepUuid,
    branchName: 'main',
  },
  identities: [
    {
      name: 'ledger main',
      accepts: [{}],
      refuses: {
        'another branch': { branchName: 'dev' },
        'another repository': { sub: `${otherUuid}:${stepUuid}`, repositoryUuid: otherUuid },
        'the same workspace name, taken over': { workspaceUuid: otherUuid },
      },
    },
    {
      name: 'ledger production',
      accepts: [
        { sub: `${repositoryUuid}:${environmentUuid}:${stepUuid}`, deploymentEnvironmentUuid: environmentUuid },
      ],
      refuses: {
        'no environment': {},
        'another environment': {
          sub: `${repositoryUuid}:${otherUuid}:${stepUuid}`,
          deploymentEnvironmentUuid: otherUuid,
        },
      },
    },
  ],
}

const forgejo: Platform = {
  guide: 'forgejo',
  title: 'Forgejo Actions',
  claims: {
    iss: 'https://forge.example.com/api/actions',
    sub: 'repo:acme-12/ledger-34:ref:refs/heads/main',
    aud: exampleUrl,
    actor: 'jane',
    actor_id: '7',
    event_name: 'push',
    ref: 'refs/heads/main',
    ref_protected: 'true',
    ref_type: 'branch',
    repository: 'acme/ledger',
    repository_id: '34',
    repository_owner: 'acme',
    repository_owner_id: '12',
    run_attempt: '1',
    run_id: '43',
    run_number: '43',
    sha,
    workflow: 'release.yml',
    workflow_ref: 'acme/ledger/.forgejo/workflows/release.yml@refs/heads/main',
  },
  identities: [
    {
      name: 'ledger main',
      accepts: [{}],
      refuses: {
        'another branch': { sub: 'repo:acme-12/ledger-34:ref:refs/heads/dev', ref: 'refs/heads/dev' },
        'another repository': { sub: 'repo:acme-12/web-35:ref:refs/heads/main', repository_id: '35' },
        'a pull request': { sub: 'repo:acme-12/ledger-34:pull_request', event_name: 'pull_request' },
        'an older repository with such a name': { repository: 'acme-12/ledger-34', repository_id: '9' },
      },
    },
    {
      name: 'ledger main of an older repository',
      accepts: [{ ...mainOfLedger, repository_id: undefined, repository_owner_id: undefined, actor_id: undefined }],
      refuses: { 'the newer format': {}, 'a branch without protection': { ...mainOfLedger, ref_protected: 'false' } },
    },
  ],
}

export const platforms: readonly Platform[] = [
  github,
  gitlab,
  kubernetes,
  google,
  azure,
  buildkite,
  circleci,
  bitbucket,
  forgejo,
]
