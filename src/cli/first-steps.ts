/** Lines to copy and paste after the first start; they need nothing but a shell and curl. */
export function firstSteps(url: string, data: string): string {
  return `
First steps, in another terminal in this folder:

  export TOKEN=$(bin/pinfold token --data ${quote(data)})
  ORG=$(curl -s -H "Authorization: Bearer $TOKEN" ${url}/iam/v2/groups/ -d '{"name":"acme"}' | sed -E 's/^\\{"uid":"([^"]*)".*/\\1/')
  curl -s -H "Authorization: Bearer $TOKEN" ${url}/registry/v2/repos/$ORG -d '{"name":"web","description":"The shop"}'
  curl -s -H "Authorization: Bearer $TOKEN" "${url}/registry/v2/repos?uidp.descendants_of=$ORG"
`
}

function quote(text: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
