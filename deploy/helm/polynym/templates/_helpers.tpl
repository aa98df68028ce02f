{{- define "polynym.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "polynym.selector" -}}
app.kubernetes.io/name: polynym
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "polynym.server" -}}
{{ include "polynym.selector" . }}
app.kubernetes.io/component: server
{{- end -}}

{{/* The labels of objects, beside those that select. */}}
{{- define "polynym.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "polynym.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{/* What the restricted standard of pods demands. 65532 is the user of the image. */}}
{{- define "polynym.podSecurity" -}}
automountServiceAccountToken: false
# The variables that Kubernetes would set for the Service begin like those of settings.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "polynym.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{- define "polynym.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The store of a process on MongoDB: a file has it, which the variable of the image would override. */}}
{{- define "polynym.mongodbEnv" -}}
- { name: POLYNYM_CONFIG, value: /etc/polynym/store/store.toml }
- { name: POLYNYM_STORE, value: "" }
{{- end -}}

{{- define "polynym.probe" -}}
httpGet: { path: {{ .path }}, port: admin, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.tls.secretName "") }} }
{{- end -}}
