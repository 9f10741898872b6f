{{- define "robots.selector" -}}
app.kubernetes.io/name: robots-decisions
app.kubernetes.io/component: service
{{- end }}

{{- define "robots.labels" -}}
app.kubernetes.io/name: robots-decisions
app.kubernetes.io/part-of: robots-decisions
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "robots.settings" -}}
{{- $settings := dict
  "PACE_INSTANCES" (add1 .Values.autoscaling.maxReplicas | toString)
  "RECHECK_FILE" "/etc/robots/recheck/recheck.toml"
  "AGENTS_FILE" "/etc/robots/agents/agents.toml" }}
{{- if .Values.storeSecret }}{{- $_ := set $settings "SECRETS_DIR" "/run/secrets/robots" }}{{- end }}
{{- with .Values.storePasswordKey }}{{- $_ := set $settings "REDIS_PASSWORD_FILE" (print "/run/secrets/robots/" .) }}{{- end }}
{{- if .Values.apiKeysSecret }}{{- $_ := set $settings "API_KEYS_FILE" "/run/secrets/robots-keys/api-keys" }}{{- end }}
{{- toYaml (mergeOverwrite $settings .Values.settings) }}
{{- end }}
