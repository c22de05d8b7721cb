import type { FieldViolation } from '#lib/errors.ts'

/** Helm chart that deploys the images of a repository. An absent field differs from an empty one. */
export type HelmChart = { source?: string | undefined; repo: string; chart?: string | undefined }

export const deploymentType = 'registry.pinfold.dev/Deployment'

const maxCharts = 100
const maxText = 2048

/** Problems of the charts. Each names the chart by its position in the list. */
export function problemsOf(charts: readonly HelmChart[]): FieldViolation[] {
  if (charts.length > maxCharts) return [{ field: 'charts', description: `must have at most ${maxCharts} charts` }]
  return charts.flatMap(({ source = '', repo, chart = '' }, i) => {
    const texts = Object.entries({ source, repo, chart }).filter(([, text]) => text.length > maxText)
    const problems = texts.map(([name]): FieldViolation => {
      return { field: `charts[${i}].${name}`, description: `must be at most ${maxText} characters long` }
    })
    if (problems.length > 0 || isRepository(repo)) return problems
    const description = 'must be an https or oci URL without a user name and a password; http is allowed for localhost'
    return [{ field: `charts[${i}].repo`, description }]
  })
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

function isRepository(text: string): boolean {
  const url = URL.parse(text)
  if (!url || url.hostname === '' || url.username !== '' || url.password !== '') return false
  if (url.protocol === 'http:') return loopback.test(url.hostname)
  return url.protocol === 'https:' || url.protocol === 'oci:'
}
